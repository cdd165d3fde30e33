-- stdlib/nn/Hardsigmoid.lua: (x + 3) / 6, limited to the range 0..1.

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.Hardsigmoid() or nn.Hardsigmoid{inplace = true}
return activation_layer("Hardsigmoid", "hardsigmoid", { "inplace" })
