-- stdlib/nn/SELU.lua: 1.0507 elu(x) with an alpha of 1.6733, which keeps mean 0 and variance 1.

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.SELU() or nn.SELU{inplace = true}
return activation_layer("SELU", "selu", { "inplace" })
