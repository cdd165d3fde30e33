-- stdlib/nn/ReflectionPad1d.lua: reflection padding, in one dim.
-- B batch, C channels, L length.

local Padding = require "ltrain.nn.padding"

local ReflectionPad1d = Padding:extend("ReflectionPad1d")

ReflectionPad1d.__arguments = "padding"

ReflectionPad1d.dims, ReflectionPad1d.mode = 1, "reflect"

--- nn.ReflectionPad1d(1): a number for all sides, or two for each dim, the last one first
function ReflectionPad1d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, L] or [C, L] -> the same, padded
function ReflectionPad1d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ReflectionPad1d
