-- stdlib/nn/AdaptiveAvgPool3d.lua: adaptive average pooling to a given output size, in three dims.
-- B batch, C channels, D depth, H height, W width.

local AdaptiveAverage = require "ltrain.nn.pooling".AdaptiveAverage

local AdaptiveAvgPool3d = AdaptiveAverage:extend("AdaptiveAvgPool3d")

AdaptiveAvgPool3d.__arguments = "output_size"

AdaptiveAvgPool3d.dims, AdaptiveAvgPool3d.op = 3, "adaptive_avg_pool3d"

--- nn.AdaptiveAvgPool3d(1) or nn.AdaptiveAvgPool3d{false, 4, 4}: false keeps a size
function AdaptiveAvgPool3d:init(output_size) AdaptiveAverage.init(self, output_size) end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> [B, C, D', H', W']
function AdaptiveAvgPool3d:forward(x)
  local y = AdaptiveAverage.forward(self, x)
  return y
end

return AdaptiveAvgPool3d
