-- stdlib/nn/LogSigmoid.lua: log(sigmoid(x)).

return require("ltrain.nn.activation_layer")("LogSigmoid", "logsigmoid")
