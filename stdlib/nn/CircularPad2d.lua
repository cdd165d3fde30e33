-- stdlib/nn/CircularPad2d.lua: circular padding, in two dims.
-- B batch, C channels, H height, W width.

local Padding = require "ltrain.nn.padding"

local CircularPad2d = Padding:extend("CircularPad2d")

CircularPad2d.__arguments = "padding"

CircularPad2d.dims, CircularPad2d.mode = 2, "circular"

--- nn.CircularPad2d(1): a number for all sides, or two for each dim, the last one first
function CircularPad2d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, H, W] or [C, H, W] -> the same, padded
function CircularPad2d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return CircularPad2d
