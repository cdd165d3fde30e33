-- stdlib/nn/ConstantPad1d.lua: padding with a constant, in one dim.
-- B batch, C channels, L length.

local Padding = require "ltrain.nn.padding"
local config = require "ltrain.core.config"

local ConstantPad1d = Padding:extend("ConstantPad1d")

ConstantPad1d.__arguments = "padding value"

ConstantPad1d.dims = 1

--- nn.ConstantPad1d(1, 0.5): a number for all sides, or two for each dim, the last one first
function ConstantPad1d:init(padding, value)
  local number = config.argument(value, "number", "nn.ConstantPad1d", "value")
  Padding.init(self, padding, number)
end

---@param x Tensor [B, C, L] or [C, L] -> the same, padded
function ConstantPad1d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ConstantPad1d
