--- stdlib/files/csv.lua: lt.csv: tables in text files.

local c = require "ltrain.c"
local Table = require "ltrain.files.Table"
local config = require "ltrain.core.config"
local csv_field = require "ltrain.core.csv_field"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"
local strict_arity = require "ltrain.core.strict_arity"

local OPTIONS <const> = {
  delimiter = { type = "string", default = "," },
  header = { type = "boolean", default = true },
  missing = { type = "table", default = csv_field.MISSING },
  types = { type = "table", default = {} },
  bytes = { type = "integer", min = 1, doc = "read only the rows that end within so many bytes" },
}
local KINDS <const> = { integer = true, number = true, text = true }

local csv = {}

local function check_types(types, names, path)
  local known = {}
  for k, name in ipairs(names) do known[name], known[k] = true, name == "" end
  for name, kind in next, types do
    if not KINDS[kind] then
      errors.blame("csv.read: types.%s must be 'integer', 'number' or 'text', got %s", name,
        errors.show(kind))
    end
    if not known[name] then
      errors.blame("csv.read: %s: types: there is no column %s%s", errors.printable(path),
        errors.show(name), errors.did_you_mean(name, names))
    end
  end
end

--- Read a file as a Table. Each column is inferred to contain integers, numbers (NaN if missing) or
--- text. Options: `delimiter` (","), `header` (true; false: the columns are named "1", "2", ...),
--- `missing` (texts that denote missing values: "", "NA", "N/A", "NaN", "nan", "null"), `types`
--- ({name = "integer"|"number"|"text"}: the type of a column; without a header by number). Fields
--- in double quotes are text, unless `types` overrides this or all fields including the names are
--- quoted. A row with another number of fields than the first, or a field that does not have the
--- type of `types`, is an error with its line. Blank lines are ignored. `bytes`: read only the rows
--- that end within this number of bytes, and return, after the table, the number of bytes read and
--- the size of the file. Returns nil and the reason if the file cannot be read.
---@param path string
function csv.read(path, options)
  local o <const> = config.check(options, OPTIONS, "csv.read")
  if #o.delimiter ~= 1 or o.delimiter:find '["\r\n]' then
    errors.blame("csv.read: delimiter must be one character, got %s", errors.show(o.delimiter))
  end
  local read <const>, message = c.io.csv_read(path, o)
  if not read then return nil, message end
  check_types(o.types, read.names, path)
  local columns = {}
  for k, name in ipairs(read.names) do
    columns[k] = { name = name ~= "" and name or tostring(k), kind = read.kinds[k],
                   values = read.values[k], words = read.words[k] }
  end
  if o.bytes then return Table(columns), read.bytes, read.file_bytes end
  return Table(columns)
end

-- A column of a list of numbers and texts, or of a tensor [n].
local function column_of(name, values)
  if c.is_tensor(values) then
    if values.ndim ~= 1 then
      errors.blame("csv.table: %s must be a tensor [n], got %s", name, errors.show(values))
    end
    local whole <const> = not values.dtype:find "f"
    return { name = name, kind = whole and "integer" or "number",
             values = values:to(whole and "i64" or "f64") }
  end
  if type(values) ~= "table" then
    errors.blame("csv.table: %s must be a tensor or a list, got %s", name, errors.show(values))
  end
  if type(values[1]) == "number" then
    return column_of(name, c.tensor(values, { dtype = "f64" }))
  end
  local words, ids, places = {}, {}, {}
  for k, text in elements.each(values) do
    if type(text) ~= "string" then
      errors.blame("csv.table: %s[%d] must be text as the others, got %s", name, k,
        errors.show(text))
    end
    if text ~= "" and not places[text] then
      words[#words + 1] = text
      places[text] = #words - 1
    end
    ids[k] = places[text] or -1
  end
  local empty <const> = #ids == 0
  return { name = name, kind = "text", words = words,
           values = empty and c.zeros(0, { dtype = "i64" }) or c.tensor(ids, { dtype = "i64" }) }
end

--- A Table of columns: a list of {name, values}, where values are a tensor [n] or a list of numbers
--- or strings; an empty string is a missing value.
---@param columns table
function csv.table(columns)
  config.argument(columns, "table", "csv.table", "columns")
  local made = {}
  local name <const> = columns[1] == nil and next(columns)
  if name then
    errors.blame("csv.table: columns must be a list of {name, values}: got a field %s",
      errors.show(name))
  end
  for k, pair in elements.each(columns) do
    if type(pair) ~= "table" or type(pair[1]) ~= "string" then
      errors.blame("csv.table: column %d must be {name, values}, got %s", k, errors.show(pair))
    end
    made[k] = column_of(pair[1], pair[2])
    local n <const>, first = made[k].values.shape[1], made[1].values.shape[1]
    if n ~= first then
      errors.blame("csv.table: %s has %d values, %s has %d", made[k].name, n, made[1].name, first)
    end
  end
  return Table(made)
end

return strict_arity.all(csv, "csv")
