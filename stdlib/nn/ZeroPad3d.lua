-- stdlib/nn/ZeroPad3d.lua: zero padding, in three dims.
-- B batch, C channels, D depth, H height, W width.

local Padding = require "ltrain.nn.padding"

local ZeroPad3d = Padding:extend("ZeroPad3d")

ZeroPad3d.__arguments = "padding"

ZeroPad3d.dims = 3

--- nn.ZeroPad3d(1): a number for all sides, or two for each dim, the last one first
function ZeroPad3d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> the same, padded
function ZeroPad3d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ZeroPad3d
