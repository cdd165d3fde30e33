-- stdlib/nn/Tanhshrink.lua: x - tanh(x).

return require("ltrain.nn.activation_layer")("Tanhshrink", "tanhshrink")
