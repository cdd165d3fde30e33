-- stdlib/nn/AdaptiveAvgPoolNd.lua: adaptive average pooling to a given output size, in N dims.
-- B batch, C channels, ... dims.

local Pooling = require "ltrain.nn.pooling"
local dims_family = require "ltrain.core.dims_family"

return dims_family.extend(Pooling, "AdaptiveAvgPoolNd", function(AdaptiveAvgPoolNd, n)
  AdaptiveAvgPoolNd.__arguments = "output_size"
  AdaptiveAvgPoolNd.op = ("adaptive_avg_pool%dd"):format(n)
  AdaptiveAvgPoolNd.options = {}

  --- nn.AdaptiveAvgPoolNd(7): one size for all dims, or a list; false keeps a dim's size
  function AdaptiveAvgPoolNd:init(output_size) Pooling.init(self, "output_size", output_size) end

  ---@param x Tensor [B, C, ...] or [C, ...] -> [B, C, ...']
  function AdaptiveAvgPoolNd:forward(x)
    local y = Pooling.forward(self, x)
    return y
  end
end)
