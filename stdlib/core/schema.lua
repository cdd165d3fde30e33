--- stdlib/core/schema.lua: checks a table that was read back from a file against a schema: its
--- fields and their types.
--
-- A schema is a word ("count"), several joined by "|", with "?" behind it where nil will do; or one
-- of { list = schema }, { map = schema } (names to values), { key_of = table } (a name that it has)
-- and { fields = { name = schema, ... } }, with optional = true where nil will do. Fields that a
-- schema does not name are left alone.
local errors = require "ltrain.core.errors"
local parts = require "ltrain.core.parts"
local tree = require "ltrain.core.tree"

local schema = {}

local function is_type(name)
  return function(value) return type(value) == name end
end

local function is_integer(value) return math.type(value) == "integer" end

-- Each word: how it is called, and what it takes.
local WORDS <const> = {
  any = { "a value", function(value) return value ~= nil end },
  boolean = { "true or false", is_type "boolean" },
  count = { "a count", function(value)
    return is_integer(value) and value >= 0 and value <= 1 << 53
  end },
  integer = { "an integer", is_integer },
  number = { "a number", is_type "number" },
  string = { "a string", is_type "string" },
  table = { "a table", is_type "table" },
  tensor = { "a tensor", parts.is_tensor },
}

local function below(path, name)
  if math.type(name) == "integer" then return ("%s[%d]"):format(path, name) end
  return path == "" and name or path .. "." .. name
end

local function mismatch(path, wanted, value)
  return ("field '%s' must be %s: got %s"):format(errors.printable(path), wanted,
    errors.show(value))
end

local function wrong_word(value, words, path)
  if value == nil and words:sub(-1) == "?" then return nil end
  local names = {}
  for word in words:gmatch "%a+" do
    local row = WORDS[word]
    if row[2](value) then return nil end
    names[#names + 1] = row[1]
  end
  return mismatch(path, table.concat(names, " or "), value)
end

local function wrong_list(value, of, path)
  for key in next, value do
    local is_position = is_integer(key) and key >= 1 and key <= #value
    if not is_position then return mismatch(path, "a list", value) end
  end
  for i = 1, #value do -- a null of JSON is a hole
    local wrong = schema.wrong(value[i], of, below(path, i))
    if wrong then return wrong end
  end
end

local function wrong_map(value, of, path)
  for name, field in tree.pairs(value) do
    if type(name) ~= "string" then return mismatch(path, "a table of names", value) end
    local wrong = schema.wrong(field, of, below(path, name))
    if wrong then return wrong end
  end
end

local function wrong_fields(value, fields, path)
  for name, of in tree.pairs(fields) do
    local wrong = schema.wrong(value[name], of, below(path, name))
    if wrong then return wrong end
  end
end

--- What is wrong with `value`, a sentence that names the field; nil when it matches the schema.
function schema.wrong(value, of, path)
  path = path or ""
  if type(of) == "string" then return wrong_word(value, of, path) end
  if value == nil and of.optional then return nil end
  if of.key_of then
    if type(value) == "string" and of.key_of[value] ~= nil then return nil end
    return mismatch(path, "a known name", value)
  end
  if type(value) ~= "table" or getmetatable(value) ~= nil then
    return path ~= "" and mismatch(path, of.list and "a list" or "a table", value)
      or ("it must be a table: got %s"):format(errors.show(value))
  elseif of.list then
    return wrong_list(value, of.list, path)
  elseif of.map then
    return wrong_map(value, of.map, path)
  end
  return wrong_fields(value, of.fields, path)
end

--- Raises at the user's line unless `value` has the fields; `where` begins the text.
function schema.check(value, fields, where)
  local wrong = schema.wrong(value, { fields = fields })
  if wrong then errors.blame("%s: load_state_dict: %s", where, wrong) end
end

return schema
