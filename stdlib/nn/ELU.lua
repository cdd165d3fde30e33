-- stdlib/nn/ELU.lua: x; `alpha` (exp(x) - 1) where it is negative.

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.ELU() or nn.ELU(0.5)
return activation_layer("ELU", "elu", {
  { "alpha", type = "number", default = 1, doc = "negative saturation value" },
  "inplace",
})
