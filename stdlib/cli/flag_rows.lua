--- stdlib/cli/flag_rows.lua: the declaration of a script's flag (type, default), and
--- conversion of its text.
--
-- lt.args declares rows (stdlib/cli/args.lua); a hyper-parameter is a row by its value
-- (stdlib/cli/settings.lua).
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local overrides = require "ltrain.trainer.setup.overrides"
local tree = require "ltrain.core.tree"

local flag_rows = {}

local ROW <const> = { "default", "help", "choices", "min", "max", "type", "required" }
local TYPES <const> = { boolean = true, integer = true, number = true, string = true }
local LITERALS <const> = { ["true"] = true, ["false"] = false }

--- Raises; the command line makes it its own error, of usage.
function flag_rows.refuse(...)
  overrides.args.wrong = (...):format(select(2, ...))
  errors.blame("%s", overrides.args.wrong)
end

local function type_of(value)
  return math.type(value) == "integer" and "integer" or type(value)
end

-- Whether the first element of a table is a default with more behind it.
local function is_row(value)
  if type(value) ~= "table" then return false end
  for key in next, value do
    if math.type(key) ~= "integer" then return true end
  end
  return type(value[2]) == "string" and type(value[1]) ~= "string" or type(value[1]) == "table"
    or type(value[1]) == "string" and #value <= 2
end

local function check_keys(name, row)
  for key in tree.pairs(row) do
    local unknown = key ~= 1 and key ~= 2 and errors.unknown(key, ROW)
    if unknown then errors.blame("args: %s: unknown field %s", name, unknown) end
  end
end

--- What a row declares: { type =, list = whether it is one, default =, doc =, choices =, min =,
-- max =, required = }.
function flag_rows.row_of(name, declared)
  local row = is_row(declared) and declared or { declared }
  check_keys(name, row)
  local default = row[1]
  if default == nil then default = row.default end
  local list = type(default) == "table"
  local kind = row.type or list and type_of(default[1]) or default ~= nil and type_of(default)
    or "string"
  if not TYPES[kind] then
    errors.blame("args: %s: its default must be a number, a text, a boolean or a list of them: "
      .. "got %s", name, errors.show(default))
  end
  local made = { type = kind, list = list, doc = row[2] or row.help, choices = row.choices,
    min = row.min, max = row.max, required = row.required }
  if default ~= nil then
    for _, one in ipairs(list and default or { default }) do
      config.value(one, made, "args", name)
    end
  end
  made.default = default
  return made
end

--- The value of a text; with `where`, of a field of that file of configuration.
function flag_rows.convert(where, name, row, value)
  local of_flag = where == nil
  local shown, from = of_flag and "--" .. name or name, where or "run"
  local function one(text)
    if of_flag and row.type == "boolean" then
      if LITERALS[text] ~= nil then text = LITERALS[text] end
    elseif of_flag and row.type ~= "string" then
      text = tonumber(text) or text
    end
    local ok, taken = pcall(config.value, text, row, from, shown)
    if ok then return taken end
    flag_rows.refuse("%s", c.last_error().message)
  end
  if not row.list then return one(value) end
  local list = {}
  if of_flag then
    for text in value:gmatch "[^,]+" do list[#list + 1] = one(text) end
  else
    for i, element in ipairs(type(value) == "table" and value or { value }) do
      list[i] = one(element)
    end
  end
  return list
end

return flag_rows
