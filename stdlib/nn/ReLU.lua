-- stdlib/nn/ReLU.lua: max(x, 0).

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.ReLU() or nn.ReLU{inplace = true}
return activation_layer("ReLU", "relu", { "inplace" })
