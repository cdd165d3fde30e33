--- stdlib/cli/settings.lua: applies `--config FILE`, `--model.NAME` and `--data.NAME` to
--- the script's modules and Trainers.
--
-- A file has groups: trainer (its options), model and data (hyper-parameters), args (of lt.args);
-- beside them seed and ckpt_path, options of the Trainer and names of lt.args. Of several files the
-- later ones win, and flags over all of them. A hyper-parameter is replaced in the table that init
-- passes to save_hyperparameters, which therefore comes before what reads the table.
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local flag_rows = require "ltrain.cli.flag_rows"
local hyperparameters = require "ltrain.core.hyperparameters"
local options = require "ltrain.trainer.setup.options"
local overrides = require "ltrain.trainer.setup.overrides"
local script_source = require "ltrain.core.script_source"
local tree = require "ltrain.core.tree"

local settings = {
  args = {}, -- of lt.args: name -> {value =, where = the file}
  model = {}, -- by dotted name: {value =, where = the file, or nil of a flag, used =}
  data = {},
  declared = { model = {}, data = {} }, -- names that were saved
  own = {}, -- seed, ckpt_path
}

local GROUPS <const> = { trainer = true, model = true, data = true, args = true }
local OWN <const> = { seed = "seed", seed_everything = "seed", ckpt_path = "ckpt_path" }
local ROWS <const> = { seed = { type = "integer", min = 0 }, ckpt_path = { type = "string" } }
local refuse <const> = flag_rows.refuse

-- The table in a file of YAML, JSON or Lua.
local function read_file(path)
  local text, message = c.io.read_file(path)
  local value
  if text and path:find "%.ya?ml$" then
    value, message = require "ltrain.files.yaml".decode(text)
  elseif text and path:find "%.lua$" then
    local chunk, wrong = load(text, "@" .. path, "t", { math = math })
    local ok, result = pcall(chunk or error, wrong)
    value, message = ok and result, not ok and tostring(result)
  elseif text then
    value, message = c.io.json_decode(text, { plain = true })
  end
  if type(value) == "table" then return value end
  refuse("run: --config: %s: %s", path, message or "it is not a table of values")
end

local function is_group(value)
  return type(value) == "table" and type(next(value)) == "string"
end

-- Values by dotted name.
local function flatten(into, prefix, values, where)
  for name, value in tree.pairs(values) do
    if is_group(value) then
      flatten(into, prefix .. name .. ".", value, where)
    else
      into[prefix .. tostring(name)] = { value = value, where = where }
    end
  end
end

-- Raises where a value of the file `where` does not fit the row of its name.
local function check(value, row, where, name)
  local ok, wrong = pcall(config.value, value, row, where, name)
  if not ok then refuse("run: %s", c.last_error() and c.last_error().message or wrong) end
end

-- Lightning's `seed_everything: true` names no seed.
local function take_own(name, value, path)
  if name == "seed_everything" and type(value) == "boolean" then return end
  check(value, ROWS[OWN[name]], path, name)
  settings.own[OWN[name]] = value
end

-- Fields of the module or the data module. Lightning writes {class_path =, init_args =} of a class
-- that a file chooses; here the script does.
local function take_fields(group, values, path)
  if values.class_path ~= nil then
    refuse("run: %s: %s.class_path: the script makes the %s: write the fields of init_args under "
      .. "%s", path, group, group == "model" and "module" or "data module", group)
  end
  flatten(settings[group], "", values, path)
end

-- Whether it is Lightning's form of an object, or a list of such.
local function has_class(value)
  if type(value) ~= "table" then return false end
  return value.class_path ~= nil or type(value[1]) == "table" and has_class(value[1])
end

local function take_trainer(values, where, by_flag)
  for name, value in tree.pairs(values) do
    if not options[name] then
      refuse("run: %s: unknown option 'trainer.%s'%s", where, tostring(name),
        errors.did_you_mean(name, tree.keys(options)))
    elseif has_class(value) then
      refuse("run: %s: trainer.%s: the script makes objects: %s = {...} in its trainer", where,
        name, name)
    elseif not by_flag[name] then
      check(value, options[name], where, "trainer." .. name)
      overrides.set(name, value, where)
    end
  end
end

local function take_file(path, by_flag)
  local read <const> = read_file(path)
  for name in next, GROUPS do
    local group = read[name]
    if type(group) == "table" and next(group) == nil then read[name] = nil end -- it says nothing
  end
  for name, value in tree.pairs(read) do
    if name == "trainer" and is_group(value) then
      take_trainer(value, path, by_flag)
    elseif (name == "model" or name == "data") and is_group(value) then
      take_fields(name, value, path)
    elseif name == "args" and is_group(value) then
      for key, one in next, value do settings.args[key] = { value = one, where = path } end
    elseif options[name] then
      take_trainer({ [name] = value }, path, by_flag)
    elseif OWN[name] then
      take_own(name, value, path)
    else
      settings.args[name] = { value = value, where = path }
    end
  end
end

--- Reads files of configuration, of which later ones win; options of the Trainer that the command
--- line has set stay.
function settings.take_files(paths)
  local by_flag = {}
  for name in next, overrides.values do by_flag[name] = true end
  for name in next, overrides.unset do by_flag[name] = true end
  for _, path in ipairs(paths) do take_file(path, by_flag) end
end

--- Takes the flags --model.NAME and --data.NAME: a list of {group =, name =, text =}.
function settings.take_flags(flags)
  for _, flag in ipairs(flags) do settings[flag.group][flag.name] = { value = flag.text } end
end

-- How a hyper-parameter is written in messages: as a flag, or as a field of its file.
local function shown(group, name, given)
  return given.where and ("%s: %s.%s"):format(given.where, group, name)
    or ("--%s.%s"):format(group, name)
end

-- The table in which a dotted name is a field, and its last part; nil where there is none.
local function find(values, name)
  local first, rest = name:match "^([^.]*)%.(.+)$"
  if not first then
    if values[name] == nil then return nil end
    return values, name
  end
  local below = values[first]
  if is_group(below) then return find(below, rest) end
end

-- Raises where init has read the field before it passes the table to save_hyperparameters: what it
-- did with the old value would stay.
local function check_unread(key, text)
  local here
  for _, frame in ipairs(c.runtime.frames.list(c.runtime.frames.threads()[1])) do
    here = here or not frame.ours and frame.what ~= "C" and frame or nil
  end
  local lines = here and script_source.text(here.source)
  lines = lines and script_source.lines(lines) or {}
  for number = here and here.first_line or 1, here and here.line - 1 or 0 do
    local line = (lines[number] or ""):gsub("%-%-.*", ""):gsub("%f[%w_]self%." .. key, "")
    if line:find("[%w_]%." .. key .. "%f[^%w_]") and not line:find("%." .. key .. "%s*=%f[^=]") then
      errors.blame("%s: line %d of init reads %s before self:save_hyperparameters(o): call that "
        .. "first", text, number, key)
    end
  end
end

local function replace(group, name, given, values)
  local at, key = find(values, name)
  if not at then at, key = find(values, (name:gsub("-", "_"))) end
  if not at or type(at[key]) == "table" and is_group(at[key]) then return end
  local row = { type = type(at[key]), list = type(at[key]) == "table" }
  if row.list then row.type = type(at[key][1]) end
  check_unread(key, shown(group, name, given))
  at[key] = flag_rows.convert(given.where, group .. "." .. name, row, given.value)
  given.used = true
end

-- Called with what an object saves, before it is saved.
local function override(self, values)
  local group = self.__module and "model" or "data"
  flatten(settings.declared[group], "", values)
  for name, given in tree.pairs(settings[group]) do replace(group, name, given, values) end
end

local function unknown(group, name, given)
  local names = tree.keys(settings.declared[group])
  local text = shown(group, name, given)
  if #names == 0 then
    refuse("run: %s: no %s of the script has saved hyper-parameters: call "
      .. "self:save_hyperparameters(o) in its init", text,
      group == "model" and "module" or "data module")
  end
  local near = errors.nearest(name, names)
  local form = given.where and "'%s.%s'" or "--%s.%s"
  refuse("run: %sunknown option %s; %s", given.where and given.where .. ": " or "",
    form:format(group, name), near and ("did you mean %s?"):format(form:format(group, near))
      or "there are " .. table.concat(names, ", "))
end

--- Raises where a file or a flag has named what the script does not have.
function settings.check()
  for _, group in ipairs { "model", "data" } do
    for name, given in tree.pairs(settings[group]) do
      if not given.used then unknown(group, name, given) end
    end
  end
  for name, given in tree.pairs(settings.args) do
    if not overrides.args.values then
      refuse("run: %s: unknown option '%s'%s", given.where, tostring(name),
        errors.did_you_mean(name, tree.keys(options)))
    end
  end
end

--- From here on modules and data modules get what was taken.
function settings.begin()
  hyperparameters.override, overrides.check_settings = override, settings.check
end

return settings
