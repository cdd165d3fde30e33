-- stdlib/nn/ReLU6.lua: x limited to the range 0..6.

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.ReLU6() or nn.ReLU6{inplace = true}
return activation_layer("ReLU6", "relu6", { "inplace" })
