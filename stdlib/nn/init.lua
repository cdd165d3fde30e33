-- stdlib/nn/init.lua: lt.nn, the layers and losses: each is the file of its name.

local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.nn", "nn", {
  "clip_grad_norm_", "clip_grad_value_", "deepcopy", "functional", init = "ltrain.nn.initialise",
  utils = "ltrain.nn.utils",
})
