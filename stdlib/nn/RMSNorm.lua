-- stdlib/nn/RMSNorm.lua: RMS normalization: x divided by the root of its mean square over the last
-- dims, times weight. N any leading dims, S the normalized shape.

local LayerNorm = require "ltrain.nn.LayerNorm"
local c = require "ltrain.c"

local RMSNorm = LayerNorm:extend("RMSNorm")

RMSNorm.__arguments = "normalized_shape | eps elementwise_affine"

RMSNorm.options = {
  eps = { type = "number", min = 0,
    doc = "added to the mean square; by default the dtype's epsilon (f32's for bf16 and f16)" },
  elementwise_affine = { type = "boolean", default = true, doc = "learn a weight" },
}

--- nn.RMSNorm(128) or nn.RMSNorm({8, 16}, {eps = 1e-6}): the sizes of the dims to normalize over
function RMSNorm:init(normalized_shape, options)
  LayerNorm.init(self, normalized_shape, options)
end

---@param x Tensor [N, S] -> [N, S]
function RMSNorm:forward(x)
  local y = c.rms_norm(x, self.normalized_shape, self.weight, self.eps)
  return y
end

return RMSNorm
