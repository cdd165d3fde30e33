-- stdlib/nn/CELU.lua: x; `alpha` (exp(x / `alpha`) - 1) where it is negative.

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.CELU() or nn.CELU(0.5)
return activation_layer("CELU", "celu", {
  { "alpha", type = "number", default = 1, doc = "negative saturation value",
    check = function(alpha) return alpha == 0 and "must not be 0" or nil end },
  "inplace",
})
