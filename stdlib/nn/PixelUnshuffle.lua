-- stdlib/nn/PixelUnshuffle.lua: rearranges pixels to channels, the inverse of PixelShuffle.
-- C channels, H height, W width, r the factor.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local pixel_shuffle = require "ltrain.ops.pixel_shuffle"

local PixelUnshuffle = Module:extend("PixelUnshuffle")

PixelUnshuffle.__arguments = "downscale_factor"

--- nn.PixelUnshuffle(2)
function PixelUnshuffle:init(downscale_factor)
  self.downscale_factor = config.argument(downscale_factor, "integer", "nn.PixelUnshuffle",
    "downscale_factor", { min = 1 })
end

---@param x Tensor [..., C, H * r, W * r] -> [..., C * r * r, H, W]
function PixelUnshuffle:forward(x)
  local y = pixel_shuffle.pixel_unshuffle(x, self.downscale_factor)
  return y
end

function PixelUnshuffle:extra_repr() return ("%d"):format(self.downscale_factor) end

return PixelUnshuffle
