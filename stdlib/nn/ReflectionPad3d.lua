-- stdlib/nn/ReflectionPad3d.lua: reflection padding, in three dims.
-- B batch, C channels, D depth, H height, W width.

local Padding = require "ltrain.nn.padding"

local ReflectionPad3d = Padding:extend("ReflectionPad3d")

ReflectionPad3d.__arguments = "padding"

ReflectionPad3d.dims, ReflectionPad3d.mode = 3, "reflect"

--- nn.ReflectionPad3d(1): a number for all sides, or two for each dim, the last one first
function ReflectionPad3d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> the same, padded
function ReflectionPad3d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ReflectionPad3d
