-- stdlib/nn/ConstantPad2d.lua: padding with a constant, in two dims.
-- B batch, C channels, H height, W width.

local Padding = require "ltrain.nn.padding"
local config = require "ltrain.core.config"

local ConstantPad2d = Padding:extend("ConstantPad2d")

ConstantPad2d.__arguments = "padding value"

ConstantPad2d.dims = 2

--- nn.ConstantPad2d(1, 0.5): a number for all sides, or two for each dim, the last one first
function ConstantPad2d:init(padding, value)
  local number = config.argument(value, "number", "nn.ConstantPad2d", "value")
  Padding.init(self, padding, number)
end

---@param x Tensor [B, C, H, W] or [C, H, W] -> the same, padded
function ConstantPad2d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ConstantPad2d
