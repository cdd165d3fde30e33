-- stdlib/nn/AdaptiveMaxPool1d.lua: adaptive max pooling to a given output size, in one dim.
-- B batch, C channels, L length.

local AdaptiveMax = require "ltrain.nn.pooling".AdaptiveMax

local AdaptiveMaxPool1d = AdaptiveMax:extend("AdaptiveMaxPool1d")

AdaptiveMaxPool1d.__arguments = "output_size | return_indices"

AdaptiveMaxPool1d.dims, AdaptiveMaxPool1d.op = 1, "adaptive_max_pool1d"

--- nn.AdaptiveMaxPool1d(1)
function AdaptiveMaxPool1d:init(output_size, options)
  AdaptiveMax.init(self, output_size, options)
end

---@param x Tensor [B, C, L] or [C, L] -> [B, C, L']
function AdaptiveMaxPool1d:forward(x)
  return AdaptiveMax.forward(self, x)
end

return AdaptiveMaxPool1d
