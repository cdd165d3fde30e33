-- stdlib/nn/CircularPad3d.lua: circular padding, in three dims.
-- B batch, C channels, D depth, H height, W width.

local Padding = require "ltrain.nn.padding"

local CircularPad3d = Padding:extend("CircularPad3d")

CircularPad3d.__arguments = "padding"

CircularPad3d.dims, CircularPad3d.mode = 3, "circular"

--- nn.CircularPad3d(1): a number for all sides, or two for each dim, the last one first
function CircularPad3d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> the same, padded
function CircularPad3d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return CircularPad3d
