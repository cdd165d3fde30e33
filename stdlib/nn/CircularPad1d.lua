-- stdlib/nn/CircularPad1d.lua: circular padding, in one dim.
-- B batch, C channels, L length.

local Padding = require "ltrain.nn.padding"

local CircularPad1d = Padding:extend("CircularPad1d")

CircularPad1d.__arguments = "padding"

CircularPad1d.dims, CircularPad1d.mode = 1, "circular"

--- nn.CircularPad1d(1): a number for all sides, or two for each dim, the last one first
function CircularPad1d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, L] or [C, L] -> the same, padded
function CircularPad1d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return CircularPad1d
