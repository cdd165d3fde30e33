-- stdlib/nn/ConstantPadNd.lua: padding with a constant, in N dims.
-- B batch, C channels, ... dims.

local Padding = require "ltrain.nn.padding"
local config = require "ltrain.core.config"
local dims_family = require "ltrain.core.dims_family"

return dims_family.extend(Padding, "ConstantPadNd", function(ConstantPadNd)
  ConstantPadNd.__arguments, ConstantPadNd.mode = "padding value", "constant"

  --- nn.ConstantPadNd(1, 0.5): a number for all sides, or two for each dim, the last one first
  function ConstantPadNd:init(padding, value)
    local number = config.argument(value, "number", "nn." .. self.__name, "value")
    Padding.init(self, padding, number)
  end

  ---@param x Tensor [B, C, ...] or [C, ...] -> the same, padded
  function ConstantPadNd:forward(x)
    local y = Padding.forward(self, x)
    return y
  end
end)
