-- stdlib/nn/Threshold.lua: x where it is above a threshold, else a value.

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.Threshold(0.1, 20)
return activation_layer("Threshold", "threshold", {
  { "threshold", type = "number", required = true },
  { "value", type = "number", required = true, doc = "replaces elements that are not above it" },
  "inplace",
})
