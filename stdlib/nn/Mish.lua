-- stdlib/nn/Mish.lua: x * tanh(softplus(x)).

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.Mish() or nn.Mish{inplace = true}
return activation_layer("Mish", "mish", { "inplace" })
