-- stdlib/nn/AdaptiveMaxPoolNd.lua: adaptive max pooling to a given output size, in N dims.
-- B batch, C channels, ... dims.

local Pooling = require "ltrain.nn.pooling"
local dims_family = require "ltrain.core.dims_family"

return dims_family.extend(Pooling, "AdaptiveMaxPoolNd", function(AdaptiveMaxPoolNd, n)
  AdaptiveMaxPoolNd.__arguments = "output_size | return_indices"
  AdaptiveMaxPoolNd.op = ("adaptive_max_pool%dd"):format(n)
  AdaptiveMaxPoolNd.options = { return_indices = Pooling.rows.return_indices }

  --- nn.AdaptiveMaxPoolNd(7): one size for all dims, or a list; false keeps a dim's size
  function AdaptiveMaxPoolNd:init(output_size, options)
    Pooling.init(self, "output_size", output_size, options)
  end

  ---@param x Tensor [B, C, ...] or [C, ...] -> [B, C, ...']
  function AdaptiveMaxPoolNd:forward(x)
    return Pooling.forward(self, x)
  end
end)
