--- stdlib/loggers/init.lua: lt.loggers: each is the file of its name.
local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.loggers", "loggers")
