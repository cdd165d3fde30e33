-- stdlib/nn/Sigmoid.lua: the logistic function 1 / (1 + exp(-x)).

return require("ltrain.nn.activation_layer")("Sigmoid", "sigmoid")
