-- stdlib/core/config.lua: checks a table of options against a description of them.
--
-- A description is a table with one row an option:
--   padding = { type = "pair", default = 0, min = 0, doc = "zeros around the input" }
-- type      alternatives joined with "|": see TYPES; absent: anything
-- default   what an absent option becomes; required = true instead when there is none
-- choices   the values that are allowed
-- min, max  bounds of a number, included; above, below  bounds, excluded
-- convert   function(value) that returns the value to use; nil and what is wrong
-- check     function(value) that returns what is wrong, or nil
-- instead   of a name that another library has, and that is not taken: what to give; the only field
-- The same rows list the options of a Trainer for the command line and the docs.

local call_form = require "ltrain.core.call_form"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local config = {}

local function is_type(name)
  return function(value)
    if type(value) == name then return value end
  end
end

local function as_integer(value)
  return type(value) == "number" and math.tointeger(value) or nil
end

local function as_pair(value)
  if type(value) ~= "table" or #value ~= 2 then return as_integer(value) end
  local height, width = as_integer(value[1]), as_integer(value[2])
  return height and width and { height, width }
end

-- `gap`: what may stand in the list in place of a number (nil: nothing).
local function as_list(value, gap)
  if type(value) ~= "table" or #value == 0 then return as_integer(value) end
  local list = {}
  for k, n in ipairs(value) do
    if n == gap then list[k] = n else list[k] = as_integer(n) end
    if list[k] == nil then return nil end
  end
  return list
end

local function as_each(value) return as_list(value) end
local function as_sizes(value) return as_list(value, false) end

-- Each type: how it is called, and a function that returns the value to use, or nil.
local TYPES <const> = {
  any = { "a value", function(value) return value end },
  boolean = { "true or false", is_type "boolean" },
  each = { "an integer or a list of integers", as_each },
  ["function"] = { "a function", is_type "function" },
  integer = { "an integer", as_integer },
  number = { "a number", is_type "number" },
  object = { "an object", function(value) return class.of(value) and value end },
  pair = { "an integer or {height, width}", as_pair },
  sizes = { "an integer or a list of integers, false where a size stays", as_sizes },
  string = { "a string", is_type "string" },
  table = { "a table", is_type "table" },
  tensor = { "a tensor", is_type "userdata" },
}

local function join(words)
  return #words > 1 and table.concat(words, ", ", 1, #words - 1) .. " or " .. words[#words]
    or words[1]
end

-- The value as one of the alternatives takes it; nil and their names when none does.
local function convert(value, alternatives)
  local names = {}
  for word in alternatives:gmatch("[^|]+") do
    local kind = TYPES[word]
    local taken = kind[2](value)
    if taken ~= nil then return taken end
    names[#names + 1] = kind[1]
  end
  return nil, join(names)
end

local function check_choice(value, row)
  local shown, words = {}, {}
  for i, choice in ipairs(row.choices) do
    if choice == value then return nil end
    shown[i] = errors.show(choice)
    if type(choice) == "string" then words[#words + 1] = choice end
  end
  return ("must be %s: got %s%s"):format(join(shown), errors.show(value),
    errors.did_you_mean(value, words))
end

-- Each bound: its words, and whether a number keeps it (a NaN keeps none).
local BOUNDS <const> = {
  { "min", "at least", function(value, bound) return value >= bound end },
  { "max", "at most", function(value, bound) return value <= bound end },
  { "above", "above", function(value, bound) return value > bound end },
  { "below", "below", function(value, bound) return value < bound end },
}

local function check_bounds(value, row)
  local plain = type(value) == "table" and getmetatable(value) == nil
  for _, number in ipairs(plain and value or { value }) do
    for _, bound in ipairs(BOUNDS) do
      local limit = row[bound[1]]
      if limit and type(number) == "number" and not bound[3](number, limit) then
        return ("must be %s %s: got %s"):format(bound[2], limit, errors.show(number))
      end
    end
  end
end

--- The value that a row makes of `value`; raises at the user's line when it does not fit.
function config.value(value, row, where, name)
  local taken, wanted = convert(value, row.type or "any")
  if taken == nil then
    errors.blame("%s: %s must be %s: got %s%s", where, name, wanted, errors.show(value),
      config.named(value, name))
  end
  local wrong
  if row.convert then taken, wrong = row.convert(taken) end
  wrong = wrong or row.choices and check_choice(taken, row) or check_bounds(taken, row)
    or row.check and row.check(taken)
  if wrong then errors.blame("%s: %s %s", where, name, wrong) end
  return taken
end

--- " with p: write its value alone" of a table {p = 0.5} in place of the argument p; else "".
function config.named(value, name)
  local is_named = type(value) == "table" and getmetatable(value) == nil and value[name] ~= nil
  return is_named and (" with %s: it is an argument, not an option: write its value alone")
    :format(name) or ""
end

--- One positional argument: config.argument(n, "integer", "nn.Linear", "in_features", {min = 1}).
function config.argument(value, kind, where, name, bounds)
  local row = { type = kind, min = bounds and bounds.min, max = bounds and bounds.max }
  return config.value(value, row, where, name)
end

local function itself(value) return value end

-- One dim may be called `dims`, and several `dim`: one name where a description has one of them.
local ONE <const> = { dim = "dims", dims = "dim" }

local function row_of(spec, name) return spec[name] or spec[ONE[name]] end

-- The value of the option `name`, whichever of the two it is called.
local function option_of(options, spec, name, where)
  local value, other = options[name], ONE[name]
  if not other or spec[other] or options[other] == nil then return value end
  if value ~= nil then errors.blame("%s: %s is given twice", where, name) end
  return options[other]
end

local function names_of(spec)
  local names = {}
  for _, row in ipairs(spec) do names[#names + 1] = row[1] end
  if #names > 0 then return names end
  for name, row in tree.pairs(spec) do
    if not row.instead then names[#names + 1] = name end
  end
  return names
end

-- Options that are usually meant by a value alone.
local USUAL <const> = { number = { "lr", "stride", "batch_size" }, string = { "dirpath" } }

-- ", {lr = 0.1}" for a value that one option alone takes or has as a choice, the usual ones before
-- all others; else "".
local function example(value, spec)
  local names, chosen = {}, nil
  for name, row in tree.pairs(spec) do
    if row.type and type(value) ~= "table" and convert(value, row.type) ~= nil
      and not (row.choices and check_choice(value, row)) then
      names[#names + 1] = name
      chosen = row.choices and name or chosen
    end
  end
  local name = chosen or #names == 1 and names[1]
  for _, usual in ipairs(USUAL[type(value)] or {}) do
    if spec[usual] then name = usual end
  end
  return name and (", {%s = %s}"):format(name, errors.show(value)) or ""
end

--- A new table with the options as `spec` describes them, defaults filled in. `where` begins the
--- text of errors: "nn.Conv2d".
function config.check(options, spec, where)
  if options == nil then options = {} end
  if type(options) ~= "table" or getmetatable(options) ~= nil then
    errors.blame("%s: options must be a table%s: got %s", where, example(options, spec),
      errors.show(options))
  end
  local names = names_of(spec)
  for name in tree.pairs(options) do
    local row = row_of(spec, name)
    if row == nil then
      errors.blame("%s: unknown option %s%s", where, errors.show(name),
        errors.did_you_mean(name, names))
    elseif row.instead then
      errors.blame("%s: %s is not taken: give %s", where, name, row.instead)
    end
  end
  local checked = {}
  for _, name in ipairs(names) do
    local row, value = spec[name], option_of(options, spec, name, where)
    if value ~= nil then
      checked[name] = config.value(value, row, where, name)
    elseif row.required then
      errors.blame("%s: option '%s' is required", where, name)
    else
      checked[name] = tree.map(row.default, itself) -- a table is copied
    end
  end
  return checked
end

--- A description whose options have places too, the first word of each row its name:
--- config.signature{ { "n", type = "integer", default = 1 }, ... }.
function config.signature(rows)
  for _, row in ipairs(rows) do rows[row[1]] = row end
  return rows
end

--- The values of a call by place, by name in a table that comes last, or both, as `signature` (of
--- config.signature) describes them: what config.check returns.
function config.arguments(where, signature, ...)
  return config.check(call_form.options(signature, where, ...), signature, where)
end

return config
