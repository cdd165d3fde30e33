-- stdlib/nn/AdaptiveMaxPool2d.lua: adaptive max pooling to a given output size, in two dims.
-- B batch, C channels, H height, W width.

local AdaptiveMax = require "ltrain.nn.pooling".AdaptiveMax

local AdaptiveMaxPool2d = AdaptiveMax:extend("AdaptiveMaxPool2d")

AdaptiveMaxPool2d.__arguments = "output_size | return_indices"

AdaptiveMaxPool2d.dims, AdaptiveMaxPool2d.op = 2, "adaptive_max_pool2d"

--- nn.AdaptiveMaxPool2d(1) or nn.AdaptiveMaxPool2d{false, 7}: false keeps a size
function AdaptiveMaxPool2d:init(output_size, options)
  AdaptiveMax.init(self, output_size, options)
end

---@param x Tensor [B, C, H, W] or [C, H, W] -> [B, C, H', W']
function AdaptiveMaxPool2d:forward(x)
  return AdaptiveMax.forward(self, x)
end

return AdaptiveMaxPool2d
