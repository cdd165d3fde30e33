-- stdlib/data/init.lua: lt.data, data sets and loaders: each is the file of its name.

local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.data", "data", {
  cifar = { "cifar10", "cifar100" },
  "collate", "digits", "get_worker_info", "mnist", "pad_sequence", "random_split", "unpad_sequence",
  "windows",
})
