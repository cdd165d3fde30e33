-- stdlib/nn/ReflectionPad2d.lua: reflection padding, in two dims.
-- B batch, C channels, H height, W width.

local Padding = require "ltrain.nn.padding"

local ReflectionPad2d = Padding:extend("ReflectionPad2d")

ReflectionPad2d.__arguments = "padding"

ReflectionPad2d.dims, ReflectionPad2d.mode = 2, "reflect"

--- nn.ReflectionPad2d(1): a number for all sides, or two for each dim, the last one first
function ReflectionPad2d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, H, W] or [C, H, W] -> the same, padded
function ReflectionPad2d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ReflectionPad2d
