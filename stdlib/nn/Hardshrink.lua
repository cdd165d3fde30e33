-- stdlib/nn/Hardshrink.lua: x; 0 where |x| is at most `lambd`.

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.Hardshrink() or nn.Hardshrink(0.1)
return activation_layer("Hardshrink", "hardshrink", {
  { "lambd", type = "number", default = 0.5 },
})
