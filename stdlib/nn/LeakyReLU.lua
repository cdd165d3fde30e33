-- stdlib/nn/LeakyReLU.lua: x; times `negative_slope` where it is negative.

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.LeakyReLU(0.2) or nn.LeakyReLU(0.2, {inplace = true})
return activation_layer("LeakyReLU", "leaky_relu", {
  { "negative_slope", type = "number", default = 0.01, doc = "slope below 0" },
  "inplace",
})
