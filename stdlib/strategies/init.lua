--- stdlib/strategies/init.lua: lt.strategies: each is the file of its name.
local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.strategies", "strategies")
