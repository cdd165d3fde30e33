-- stdlib/nn/AdaptiveAvgPool2d.lua: adaptive average pooling to a given output size, in two dims.
-- B batch, C channels, H height, W width.

local AdaptiveAverage = require "ltrain.nn.pooling".AdaptiveAverage

local AdaptiveAvgPool2d = AdaptiveAverage:extend("AdaptiveAvgPool2d")

AdaptiveAvgPool2d.__arguments = "output_size"

AdaptiveAvgPool2d.dims, AdaptiveAvgPool2d.op = 2, "adaptive_avg_pool2d"

--- nn.AdaptiveAvgPool2d(1) or nn.AdaptiveAvgPool2d{false, 7}: false keeps a size
function AdaptiveAvgPool2d:init(output_size) AdaptiveAverage.init(self, output_size) end

---@param x Tensor [B, C, H, W] or [C, H, W] -> [B, C, H', W']
function AdaptiveAvgPool2d:forward(x)
  local y = AdaptiveAverage.forward(self, x)
  return y
end

return AdaptiveAvgPool2d
