--- stdlib/callbacks/init.lua: lt.callbacks: each is the file of its name.
local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.callbacks", "callbacks")
