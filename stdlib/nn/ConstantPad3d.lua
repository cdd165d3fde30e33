-- stdlib/nn/ConstantPad3d.lua: padding with a constant, in three dims.
-- B batch, C channels, D depth, H height, W width.

local Padding = require "ltrain.nn.padding"
local config = require "ltrain.core.config"

local ConstantPad3d = Padding:extend("ConstantPad3d")

ConstantPad3d.__arguments = "padding value"

ConstantPad3d.dims = 3

--- nn.ConstantPad3d(1, 0.5): a number for all sides, or two for each dim, the last one first
function ConstantPad3d:init(padding, value)
  local number = config.argument(value, "number", "nn.ConstantPad3d", "value")
  Padding.init(self, padding, number)
end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> the same, padded
function ConstantPad3d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ConstantPad3d
