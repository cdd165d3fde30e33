-- stdlib/nn/CircularPadNd.lua: circular padding, in N dims.
-- B batch, C channels, ... dims.

local Padding = require "ltrain.nn.padding"
local dims_family = require "ltrain.core.dims_family"

return dims_family.extend(Padding, "CircularPadNd", function(CircularPadNd)
  CircularPadNd.__arguments, CircularPadNd.mode = "padding", "circular"

  --- nn.CircularPadNd(1): a number for all sides, or two for each dim, the last one first
  function CircularPadNd:init(padding) Padding.init(self, padding) end

  ---@param x Tensor [B, C, ...] or [C, ...] -> the same, padded
  function CircularPadNd:forward(x)
    local y = Padding.forward(self, x)
    return y
  end
end)
