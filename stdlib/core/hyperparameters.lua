--- stdlib/core/hyperparameters.lua: save_hyperparameters of modules and data modules, and what
--- load_from_checkpoint passes to init.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local hyperparameters = {
  override = nil, -- function(object, values), called with what is to be saved (optional)
}

local SAVEABLE <const> = { boolean = true, number = true, string = true }

-- What the init that calls save_hyperparameters was given: its table, or its arguments by name.
local function of_init(self, given)
  if not rawequal(given.self, self) then
    errors.blame("save_hyperparameters: pass what to save: self:save_hyperparameters(o) with the "
      .. "table that init is given")
  end
  given.self = nil
  local name, value = next(given)
  local is_table = name and next(given, name) == nil and type(value) == "table"
    and getmetatable(value) == nil and type(next(value)) == "string"
  return is_table and value or given
end

-- The values to save and the options, of Lightning's forms: nothing, {ignore = ...}, names.
local function read(self, given, ...)
  local first, options = ...
  if select("#", ...) == 0 then return of_init(self, given) end
  local is_options = type(first) == "table" and first.ignore ~= nil
  for name in next, is_options and first or {} do
    is_options = is_options and (name == "ignore" or name == "logger")
  end
  if is_options and options == nil then return of_init(self, given), first end
  if type(first) ~= "string" then return ... end
  local chosen = {}
  given = of_init(self, given)
  for _, name in ipairs { ... } do
    if type(name) == "table" then options = name else chosen[name] = given[name] end
  end
  return chosen, type(options) == "table" and options or nil
end

--- Adds the options of init to self.hparams: (options, {ignore =, logger =}); without options what
--- the init that calls it was given, or of that the arguments with these names.
function hyperparameters.save(self, ...)
  local values, options = read(self, c.runtime.arguments(3), ...) -- 3: who called the method
  local o = config.check(options, {
    ignore = { type = "table|string", default = {} },
    logger = { type = "boolean", default = true },
  }, "save_hyperparameters")
  local ignored, kept = {}, {}
  for name, value in next, rawget(self, "hparams") or {} do kept[name] = value end
  for _, name in ipairs(type(o.ignore) == "string" and { o.ignore } or o.ignore) do
    ignored[name] = true
  end
  if values ~= nil and (type(values) ~= "table" or getmetatable(values) ~= nil) then
    errors.blame("save_hyperparameters: a table of options is needed: got %s",
      errors.show(values))
  end
  if hyperparameters.override and values then hyperparameters.override(self, values) end
  for name, value in tree.pairs(values or {}) do
    if not ignored[name] then
      kept[name] = tree.map(value, function(leaf, keys)
        if SAVEABLE[type(leaf)] then return leaf end
        errors.blame("save_hyperparameters: %s cannot be saved: it is %s; "
          .. "leave it out with {ignore = {'%s'}}", tree.path(name, keys), errors.show(leaf), name)
      end)
    end
  end
  self.hparams = kept
  rawset(self, "_log_hparams", o.logger)
end

--- Checks the arguments of load_from_checkpoint, which is a method of a class; `is_class`: whether
--- it is one, `example`: how such a class may be called.
function hyperparameters.check_load(self, is_class, example, file, overrides)
  local where <const> = "load_from_checkpoint"
  local own = class.of(self)
  if own then
    errors.blame("%s: call it on the class: %s:%s(file)", where, own.__name, where)
  elseif not is_class then
    errors.blame("%s: call it with a colon, %s:%s(file): got %s instead of the class", where,
      example, where, errors.show(self))
  end
  config.argument(file, "string", where, "file")
  if overrides ~= nil and (type(overrides) ~= "table" or getmetatable(overrides) ~= nil) then
    errors.blame("%s: overrides must be a table of options for init: got %s", where,
      errors.show(overrides))
  end
end

--- A new table of what was saved, those in `overrides` replaced.
function hyperparameters.merged(saved, overrides)
  local all = tree.map(saved or {}, function(leaf) return leaf end)
  for name, value in tree.pairs(overrides or {}) do all[name] = value end
  return all
end

--- What the init of the class `own` is called with: the table of hyper-parameters, or each in its
--- place where init names all of them: init(width, depth).
function hyperparameters.arguments(own, hparams)
  local names, place = c.runtime.parameter_names(own.init), {}
  for k, name in ipairs(names) do place[name] = k - 1 end -- self is the first
  local values = {}
  for name, value in next, hparams do
    if not place[name] or place[name] == 0 then return hparams end
    values[place[name]] = value
  end
  if next(hparams) == nil then return hparams end
  return table.unpack(values, 1, #names - 1)
end

return hyperparameters
