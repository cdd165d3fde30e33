-- stdlib/nn/UpsamplingBilinear2d.lua: resizes images with bilinear interpolation and aligned
-- corners. N batch, C channels, H height, W width.

local Upsample = require "ltrain.nn.Upsample"

local UpsamplingBilinear2d = Upsample:extend("UpsamplingBilinear2d")

UpsamplingBilinear2d.__arguments = "| size scale_factor"

UpsamplingBilinear2d.options = {
  size = Upsample.options.size, scale_factor = Upsample.options.scale_factor,
}

--- nn.UpsamplingBilinear2d{scale_factor = 2}
function UpsamplingBilinear2d:init(options)
  Upsample.init(self, options)
  self.options.mode, self.options.align_corners = "bilinear", true
end

---@param x Tensor [N, C, H, W] -> [N, C, H', W']
function UpsamplingBilinear2d:forward(x)
  local y = Upsample.forward(self, x)
  return y
end

return UpsamplingBilinear2d
