--- stdlib/strategies/available_strategies.lua: lt.strategies.available_strategies.
local registry = require "ltrain.strategies.registry"

--- The sorted list of names that Trainer{strategy = name} takes, besides "auto".
return function() return registry.names() end
