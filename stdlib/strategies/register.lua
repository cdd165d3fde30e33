--- stdlib/strategies/register.lua: lt.strategies.register: a strategy of one's own by its name.
local Strategy = require "ltrain.core.Strategy"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local registry = require "ltrain.strategies.registry"

local WHERE <const> = "strategies.register"

local OPTIONS <const> = {
  description = { type = "string", default = "", doc = "a line on what it does" },
  override = { type = "boolean", default = false, doc = "take the place of a name that is there" },
  params = { type = "table", default = {}, doc = "options that the class is called with" },
}

--- register("mine", Mine, {description = "...", params = {checkpoint_io = io}}): from now on
--- Trainer{strategy = "mine"} is Mine{checkpoint_io = io}. A name that is taken needs `override`.
return function(name, own, options)
  config.argument(name, "string", WHERE, "the name")
  local o = config.check(options, OPTIONS, WHERE)
  name = name:lower()
  if not class.is_class(own, Strategy) then
    errors.blame("%s: %s: must be a class below lt.Strategy: got %s", WHERE, name, errors.show(own))
  elseif name == "auto" or registry.find(name) and not o.override then
    errors.blame("%s: '%s' is there already: give it another name%s", WHERE, name,
      name ~= "auto" and ", or override = true" or "")
  end
  registry.own[name] = { class = own, description = o.description, params = o.params }
  return own
end
