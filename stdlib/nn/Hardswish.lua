-- stdlib/nn/Hardswish.lua: x * hardsigmoid(x).

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.Hardswish() or nn.Hardswish{inplace = true}
return activation_layer("Hardswish", "hardswish", { "inplace" })
