-- stdlib/nn/ZeroPadNd.lua: zero padding, in N dims.
-- B batch, C channels, ... dims.

local Padding = require "ltrain.nn.padding"
local dims_family = require "ltrain.core.dims_family"

return dims_family.extend(Padding, "ZeroPadNd", function(ZeroPadNd)
  ZeroPadNd.__arguments, ZeroPadNd.mode = "padding", "constant"

  --- nn.ZeroPadNd(1): a number for all sides, or two for each dim, the last one first
  function ZeroPadNd:init(padding) Padding.init(self, padding) end

  ---@param x Tensor [B, C, ...] or [C, ...] -> the same, padded
  function ZeroPadNd:forward(x)
    local y = Padding.forward(self, x)
    return y
  end
end)
