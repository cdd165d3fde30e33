-- stdlib/nn/GLU.lua: a * sigmoid(b) of the halves a and b of x along a dim.

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.GLU() or nn.GLU(2)
return activation_layer("GLU", "glu", {
  { "dim", type = "integer", default = -1, doc = "the dim to split" },
})
