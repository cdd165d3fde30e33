--- stdlib/strategies/get.lua: lt.strategies.get: what stands behind a name.
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local registry = require "ltrain.strategies.registry"

--- {name =, class =, description =, params =} of a strategy's name; an unknown name is an error.
return function(name)
  config.argument(name, "string", "strategies.get", "the name")
  local row = registry.find(name:lower())
  if row then return row end
  errors.blame("strategies.get: there is no '%s'%s", name,
    errors.did_you_mean(name:lower(), registry.names()))
end
