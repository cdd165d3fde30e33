--- stdlib/trainer/setup/resolved_config.lua: the resolved configuration of a run, in the format of
--- `--config FILE`.
--
-- Values under names of passwords and keys are left out: where the file is read, they are the
-- script's.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local options = require "ltrain.trainer.setup.options"
local overrides = require "ltrain.trainer.setup.overrides"
local secrets = require "ltrain.core.secrets"
local tree = require "ltrain.core.tree"

local PLAIN <const> = { boolean = true, number = true, string = true }

-- A copy of a value that is plain throughout; nil of anything else, as of a table with both
-- positions and names, {"sharded", stage = 2}, which JSON has no form for.
local function plain(value)
  if PLAIN[type(value)] then return value end
  if type(value) ~= "table" or class.of(value) or getmetatable(value) then return nil end
  local _, mixed = tree.keys(value)
  if mixed then return nil end
  local copy = {}
  for key, one in next, value do
    if type(key) ~= "string" or not secrets.is_name(key) then
      copy[key] = plain(one)
      if copy[key] == nil then return nil end
    end
  end
  return copy
end

-- Options that are not their defaults, or that the command line has set; objects are left out.
local function trainer_options(trainer)
  local found = {}
  for name, row in tree.pairs(options) do
    local value = plain(trainer.options[name])
    local is_default = value == row.default or type(row.default) == "table" and value
      and next(value) == nil
    if not is_default or overrides.values[name] ~= nil then found[name] = value end
  end
  return found
end

local function hparams_of(object)
  return plain(type(object) == "table" and rawget(object, "hparams") or nil)
end

-- {seed =, trainer =, model = hyper-parameters, data = those of the data module, args = of
--- lt.args}; groups that are empty are left out.
local function resolve(trainer, module, data_module)
  local found = { trainer = trainer_options(trainer), model = hparams_of(module),
    data = hparams_of(data_module), args = plain(overrides.args.values) }
  for name, group in next, found do
    if next(group) == nil then found[name] = nil end
  end
  found.seed = c.runtime.rng_state().seed
  return found
end

-- JSON with a line for each field of tables of names.
local function lines_of(value, indent)
  if type(value) ~= "table" or type(next(value)) ~= "string" then
    return c.io.json_encode(value, { plain = true })
  end
  local lines, deeper = {}, indent .. "  "
  for name, one in tree.pairs(value) do
    lines[#lines + 1] = ("%s%s: %s"):format(deeper, c.io.json_encode(name), lines_of(one, deeper))
  end
  return ("{\n%s\n%s}"):format(table.concat(lines, ",\n"), indent)
end

--- The configuration of a loop of the Trainer, as a text of JSON; `data_module` may be nil.
return function(trainer, module, data_module)
  return lines_of(resolve(trainer, module, data_module), "") .. "\n"
end
