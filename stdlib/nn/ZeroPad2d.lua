-- stdlib/nn/ZeroPad2d.lua: zero padding, in two dims.
-- B batch, C channels, H height, W width.

local Padding = require "ltrain.nn.padding"

local ZeroPad2d = Padding:extend("ZeroPad2d")

ZeroPad2d.__arguments = "padding"

ZeroPad2d.dims = 2

--- nn.ZeroPad2d(1): a number for all sides, or two for each dim, the last one first
function ZeroPad2d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, H, W] or [C, H, W] -> the same, padded
function ZeroPad2d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ZeroPad2d
