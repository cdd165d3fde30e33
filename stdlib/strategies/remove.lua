--- stdlib/strategies/remove.lua: lt.strategies.remove: forgets what was registered.
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local registry = require "ltrain.strategies.registry"

--- Forgets a strategy that a script registered; one of the library that it had overridden is back.
return function(name)
  config.argument(name, "string", "strategies.remove", "the name")
  name = name:lower()
  if not registry.own[name] then
    errors.blame("strategies.remove: '%s' %s", name, registry.is_built_in(name)
      and "is the library's own" or "was not registered")
  end
  registry.own[name] = nil
end
