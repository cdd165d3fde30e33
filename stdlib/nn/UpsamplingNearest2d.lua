-- stdlib/nn/UpsamplingNearest2d.lua: resizes images with nearest-neighbour interpolation.
-- N batch, C channels, H height, W width.

local Upsample = require "ltrain.nn.Upsample"

local UpsamplingNearest2d = Upsample:extend("UpsamplingNearest2d")

UpsamplingNearest2d.__arguments = "| size scale_factor"

UpsamplingNearest2d.options = {
  size = Upsample.options.size, scale_factor = Upsample.options.scale_factor,
}

--- nn.UpsamplingNearest2d{scale_factor = 2}
function UpsamplingNearest2d:init(options) Upsample.init(self, options) end

---@param x Tensor [N, C, H, W] -> [N, C, H', W']
function UpsamplingNearest2d:forward(x)
  local y = Upsample.forward(self, x)
  return y
end

return UpsamplingNearest2d
