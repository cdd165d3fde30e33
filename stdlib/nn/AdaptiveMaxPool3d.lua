-- stdlib/nn/AdaptiveMaxPool3d.lua: adaptive max pooling to a given output size, in three dims.
-- B batch, C channels, D depth, H height, W width.

local AdaptiveMax = require "ltrain.nn.pooling".AdaptiveMax

local AdaptiveMaxPool3d = AdaptiveMax:extend("AdaptiveMaxPool3d")

AdaptiveMaxPool3d.__arguments = "output_size | return_indices"

AdaptiveMaxPool3d.dims, AdaptiveMaxPool3d.op = 3, "adaptive_max_pool3d"

--- nn.AdaptiveMaxPool3d(1) or nn.AdaptiveMaxPool3d{false, 4, 4}: false keeps a size
function AdaptiveMaxPool3d:init(output_size, options)
  AdaptiveMax.init(self, output_size, options)
end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> [B, C, D', H', W']
function AdaptiveMaxPool3d:forward(x)
  return AdaptiveMax.forward(self, x)
end

return AdaptiveMaxPool3d
