-- stdlib/nn/Softplus.lua: log(1 + exp(`beta` x)) / `beta`; x where `beta` x > `threshold`.

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.Softplus() or nn.Softplus{beta = 2}
return activation_layer("Softplus", "softplus", {
  { "beta", type = "number", default = 1 },
  { "threshold", type = "number", default = 20, doc = "of `beta` x, beyond which x is the result" },
})
