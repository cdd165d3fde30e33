--- stdlib/trainer/setup/option_fields.lua: the options of a Trainer as its fields: each can be
--- read; one that is assigned has its effect, or the assignment is an error.
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local options = require "ltrain.trainer.setup.options"

local option_fields = {}

--- Sets a field, named as an option, that scripts can only read.
function option_fields.fix(trainer, name, value)
  local fixed = rawget(trainer, "_fixed") or {}
  rawset(trainer, "_fixed", fixed)
  fixed[name] = value
end

--- What the Trainer has made of an option, else what was given.
function option_fields.read(trainer, name)
  local fixed, given = rawget(trainer, "_fixed"), rawget(trainer, "options")
  if fixed and fixed[name] ~= nil then return fixed[name] end
  return given and given[name]
end

--- Whether there is an option of that name.
function option_fields.is_option(name) return options[name] ~= nil end

--- trainer.name = value, for a field that the object does not have.
function option_fields.assign(trainer, name, value)
  local row = options[name]
  if not row or row.set == "field" then return rawset(trainer, name, value) end
  if row.set ~= "option" then
    errors.blame("trainer.%s: cannot be changed: set it when the Trainer is created, "
      .. "lt.Trainer{%s = %s}", name, name, errors.show(value))
  end
  if value == nil then value = row.default end
  if value ~= nil then value = config.value(value, row, "trainer", name) end
  trainer.options[name] = value
end

return option_fields
