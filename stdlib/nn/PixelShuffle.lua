-- stdlib/nn/PixelShuffle.lua: rearranges channels to pixels, increasing height and width by a
-- factor r. C channels, H height, W width, r the factor.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local pixel_shuffle = require "ltrain.ops.pixel_shuffle"

local PixelShuffle = Module:extend("PixelShuffle")

PixelShuffle.__arguments = "upscale_factor"

--- nn.PixelShuffle(2)
function PixelShuffle:init(upscale_factor)
  self.upscale_factor = config.argument(upscale_factor, "integer", "nn.PixelShuffle",
    "upscale_factor", { min = 1 })
end

---@param x Tensor [..., C * r * r, H, W] -> [..., C, H * r, W * r]
function PixelShuffle:forward(x)
  local y = pixel_shuffle.pixel_shuffle(x, self.upscale_factor)
  return y
end

function PixelShuffle:extra_repr() return ("%d"):format(self.upscale_factor) end

return PixelShuffle
