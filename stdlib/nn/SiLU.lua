-- stdlib/nn/SiLU.lua: x * sigmoid(x).

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.SiLU() or nn.SiLU{inplace = true}
return activation_layer("SiLU", "silu", { "inplace" })
