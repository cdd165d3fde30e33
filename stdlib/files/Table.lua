--- stdlib/files/Table.lua: tables: columns of numbers and of text, with names.
--
-- `lt.csv.read` returns one, `lt.csv.table` makes one of tensors and lists. Tables are immutable.
-- `t.names` are the names of its columns in order, `#t` is the number of its rows.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local csv_field = require "ltrain.core.csv_field"
local errors = require "ltrain.core.errors"

local Table = class.extend(nil, "Table")

-- `columns`: a list of {name, kind, values, words}; kind: "integer", "number" or "text", whose
-- values are ids in `words` (-1: missing).
function Table:init(columns)
  self.names, self._columns, self._by_name = {}, columns, {}
  for k, column in ipairs(columns) do
    self.names[k] = column.name
    self._by_name[column.name] = column
  end
  self._rows = columns[1] and columns[1].values.shape[1] or 0
end

function Table:__len() return self._rows end

function Table:__tostring()
  local parts = {}
  for k, column in ipairs(self._columns) do
    parts[k] = ("%s (%s)"):format(errors.printable(column.name), column.kind)
  end
  return ("Table of %d rows: %s"):format(self._rows, table.concat(parts, ", "))
end

local function find(self, fn, name)
  local column <const> = self._by_name[name]
  if not column then
    errors.blame("Table:%s: there is no column %s%s", fn, errors.show(name),
      errors.did_you_mean(name, self.names))
  end
  return column
end

local TENSOR <const> = { dtype = { type = "string", default = "f32" } }

--- Columns of numbers as a tensor [rows, columns], or [rows] for a single name that is not in a
--- list. Missing numbers are NaN. Options: `dtype` ("f32").
---@param names string|table a name, or a list of them
function Table:tensor(names, options)
  local o <const> = config.check(options, TENSOR, "Table:tensor")
  local function numbers(name)
    local column <const> = find(self, "tensor", name)
    if column.kind == "text" then
      errors.blame("Table:tensor: column %s is text: see Table:categorical, or the option types of "
        .. "csv.read", errors.show(name))
    end
    return column.values:to(o.dtype)
  end
  if type(names) ~= "table" then return numbers(names) end
  local list = {}
  for k, name in ipairs(names) do list[k] = numbers(name) end
  if #list == 0 then errors.blame "Table:tensor: no column is named" end
  return c.stack(list, 2)
end

-- The shortest decimal that reads back as the same number.
local function spell(value)
  if math.type(value) == "integer" then return tostring(value) end
  for digits = 6, 16, 5 do
    local text <const> = ("%." .. digits .. "g"):format(value)
    if tonumber(text) == value then return text end
  end
  return ("%.17g"):format(value)
end

-- The texts of a column: those of numbers as they are written.
local function texts_of(column)
  local list = column.values:tolist()
  for k, value in ipairs(list) do
    if column.kind == "text" then
      list[k] = value >= 0 and column.words[value + 1] or ""
    else
      list[k] = value ~= value and "" or spell(value)
    end
  end
  return list
end

--- A column as a list of strings; "" for missing values.
function Table:text(name) return texts_of(find(self, "text", name)) end

-- A column of numbers as one of text.
local function as_text(column)
  if column.kind == "text" then return column end
  local words, ids, places = {}, {}, {}
  for k, text in ipairs(texts_of(column)) do
    if text ~= "" and not places[text] then
      words[#words + 1] = text
      places[text] = #words - 1
    end
    ids[k] = text == "" and -1 or places[text]
  end
  return { words = words, values = c.tensor(ids, { dtype = "i64" }) }
end

--- A column as ids i64 [rows] and the list of its categories: id k is category k + 1. Categories
--- are sorted, or those of the list that is passed (such as those of the training data): values
--- that are not in it, and missing values, have the id -1.
---@param name string
---@param categories table|nil
function Table:categorical(name, categories)
  local column <const> = as_text(find(self, "categorical", name))
  if categories == nil then
    categories = {}
    for k, word in ipairs(column.words) do categories[k] = word end
    table.sort(categories)
  elseif type(categories) ~= "table" then
    errors.blame("Table:categorical: categories must be a list, got %s", errors.show(categories))
  end
  local places, ids = {}, { -1 } -- of missing ones first
  for k, word in ipairs(categories) do places[word] = k - 1 end
  for k, word in ipairs(column.words) do ids[k + 1] = places[word] or -1 end
  return c.tensor(ids, { dtype = "i64" }):index_select(1, column.values + 1), categories
end

--- The rows of an index (i64 [n], from 0), in its order.
function Table:take(index)
  local columns = {}
  for k, column in ipairs(self._columns) do
    columns[k] = { name = column.name, kind = column.kind, words = column.words,
                   values = column.values:index_select(1, index) }
  end
  return Table(columns)
end

-- A row as a table that reads each value when it is asked for: a number, a text; nil: missing.
local function row_reader(self)
  local lists, at = {}, 0
  local row <const> = setmetatable({}, { __index = function(_, name)
    local column <const> = find(self, "where", name)
    lists[name] = lists[name] or column.values:tolist()
    local value <const> = lists[name][at]
    if column.kind ~= "text" then return value == value and value or nil end
    return column.words[value + 1]
  end })
  return function(k)
    at = k
    return row
  end
end

--- The rows for which f(row) is true, where `row.name` is the value of a column (nil: missing), or
--- for which a bool tensor [rows] is true.
---@param f function|Tensor
function Table:where(f)
  if c.is_tensor(f) then
    if f.dtype ~= "bool" or f.ndim ~= 1 or f.shape[1] ~= self._rows then
      errors.blame("Table:where: needs a bool tensor [%d], got %s", self._rows, errors.show(f))
    end
    return self:take(f:nonzero():view(-1))
  end
  if not class.is_callable(f) then
    errors.blame("Table:where: needs a function or a bool tensor, got %s", errors.show(f))
  end
  local kept, row_at = {}, row_reader(self)
  for k = 1, self._rows do
    if f(row_at(k)) then kept[#kept + 1] = k - 1 end
  end
  if #kept == 0 then return self:take(c.zeros(0, { dtype = "i64" })) end
  return self:take(c.tensor(kept, { dtype = "i64" }))
end

--- Write the table as a CSV file: a row of names, missing values empty, fields in quotes where
--- necessary: also text that would be read as a number or as missing ("1", "NA"). Reading the file
--- returns the same table. Returns true, or nil and the reason.
function Table:write(path)
  local texts, lines, fields = {}, {}, {}
  for k, column in ipairs(self._columns) do
    local list = texts_of(column)
    for row, text in ipairs(column.kind == "text" and list or {}) do
      list[row] = csv_field.text(text)
    end
    texts[k], fields[k] = list, csv_field.name(column.name)
  end
  lines[1] = table.concat(fields, ",")
  for row = 1, self._rows do
    for k = 1, #texts do fields[k] = texts[k][row] end
    lines[row + 1] = table.concat(fields, ",")
    if lines[row + 1] == "" then lines[row + 1] = '""' end -- a blank line would be no row
  end
  lines[#lines + 1] = ""
  local done, message = c.io.write_file(path, table.concat(lines, "\n"), "csv.write")
  return done, message
end

return Table
