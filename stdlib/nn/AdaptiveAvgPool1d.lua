-- stdlib/nn/AdaptiveAvgPool1d.lua: adaptive average pooling to a given output size, in one dim.
-- B batch, C channels, L length.

local AdaptiveAverage = require "ltrain.nn.pooling".AdaptiveAverage

local AdaptiveAvgPool1d = AdaptiveAverage:extend("AdaptiveAvgPool1d")

AdaptiveAvgPool1d.__arguments = "output_size"

AdaptiveAvgPool1d.dims, AdaptiveAvgPool1d.op = 1, "adaptive_avg_pool1d"

--- nn.AdaptiveAvgPool1d(1)
function AdaptiveAvgPool1d:init(output_size) AdaptiveAverage.init(self, output_size) end

---@param x Tensor [B, C, L] or [C, L] -> [B, C, L']
function AdaptiveAvgPool1d:forward(x)
  local y = AdaptiveAverage.forward(self, x)
  return y
end

return AdaptiveAvgPool1d
