-- stdlib/nn/Tanh.lua: the hyperbolic tangent.

return require("ltrain.nn.activation_layer")("Tanh", "tanh")
