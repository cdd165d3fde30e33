-- stdlib/nn/Softshrink.lua: x, moved by `lambd` towards 0; 0 where it is nearer.

local activation_layer = require "ltrain.nn.activation_layer"

--- nn.Softshrink() or nn.Softshrink(0.1)
return activation_layer("Softshrink", "softshrink", {
  { "lambd", type = "number", default = 0.5, min = 0 },
})
