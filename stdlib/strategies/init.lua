--- stdlib/strategies/init.lua: lt.strategies: how ranks work together: classes, and their names.
local catalogue = require "ltrain.core.catalogue"

return catalogue("ltrain.strategies", "strategies",
  { registry = { "available_strategies", "get", "register", "remove" } })
