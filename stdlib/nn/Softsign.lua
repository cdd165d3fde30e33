-- stdlib/nn/Softsign.lua: x / (1 + |x|).

return require("ltrain.nn.activation_layer")("Softsign", "softsign")
