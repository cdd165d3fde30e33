-- stdlib/nn/ZeroPad1d.lua: zero padding, in one dim.
-- B batch, C channels, L length.

local Padding = require "ltrain.nn.padding"

local ZeroPad1d = Padding:extend("ZeroPad1d")

ZeroPad1d.__arguments = "padding"

ZeroPad1d.dims = 1

--- nn.ZeroPad1d(1): a number for all sides, or two for each dim, the last one first
function ZeroPad1d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, L] or [C, L] -> the same, padded
function ZeroPad1d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ZeroPad1d
