-- stdlib/transforms/init.lua: lt.transforms, changes of images: each is the file of its name.

local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.transforms", "transforms")
