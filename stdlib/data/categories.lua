-- stdlib/data/categories.lua: the base of OneHotEncoder and OrdinalEncoder: the categories found in
-- the columns of training data. N rows.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local Categories = Module:extend("Categories")

local OPTIONS <const> = {
  unknown = { type = "string", default = "ignore", choices = { "ignore", "error" },
    doc = "what becomes of a category that the training data did not have" },
}

-- A text as a tensor u8 [bytes], so that it is saved with the model, and back.
local function bytes_of(text)
  return c.tensor({ text:byte(1, -1) }, { dtype = "u8" })
end

local function text_of(bytes)
  local list, parts = bytes:tolist(), {}
  for k, byte in ipairs(list) do parts[k] = string.char(byte) end
  return table.concat(parts)
end

---@param names table the columns
function Categories:init(names, options)
  local who <const> = class.of(self).__name
  self.unknown = config.check(options, OPTIONS, who).unknown
  if type(names) ~= "table" or #names == 0 then
    errors.blame("%s: needs a list of names of columns, got %s", who, errors.show(names))
  end
  for k, name in ipairs(names) do config.argument(name, "string", who, ("names[%d]"):format(k)) end
  self.names = names
  self:register_buffer("categories", c.zeros(0, { dtype = "u8" }))
end

-- A column of a Table, or of a table of lists, as texts; "": missing.
local function texts_of(self, t, name, where)
  if class.has_method(t, "text") then return t:text(name) end
  local list = type(t) == "table" and t[name]
  if type(list) ~= "table" then
    errors.blame("%s: needs a Table, or lists by name, with %s: got %s", where, errors.show(name),
      errors.show(t))
  end
  local texts = {}
  for k, value in ipairs(list) do texts[k] = tostring(value) end
  return texts
end

local function sorted_set(texts)
  local seen, list = {}, {}
  for _, text in ipairs(texts) do
    if text ~= "" and not seen[text] then
      seen[text] = true
      list[#list + 1] = text
    end
  end
  table.sort(list)
  return list
end

--- Takes the categories that the columns of the training data have. Returns the encoder.
---@param t Table|table a Table, or lists by name
function Categories:fit(t)
  local lists = {}
  for k, name in ipairs(self.names) do
    lists[k] = sorted_set(texts_of(self, t, name, class.of(self).__name .. ":fit"))
    if #lists[k] == 0 then
      errors.blame("%s:fit: column %s has no value", class.of(self).__name, errors.show(name))
    end
  end
  self:register_buffer("categories", bytes_of(c.io.json_encode(lists)))
  return self
end

-- The state that is loaded next has categories of its own, as many as it has.
function Categories:resize_for_state(state, prefix)
  local saved = state[prefix .. "categories"]
  if c.is_tensor(saved) and saved.dtype == "u8" and saved.ndim == 1 then
    local empty = c.zeros(saved:numel(), { dtype = "u8", device = self.categories.device })
    self:register_buffer("categories", empty)
  end
end

--- Returns the categories of each column, a list of lists: id k is category k + 1.
function Categories:lists()
  local lists = self.categories:numel() > 0 and c.io.json_decode(text_of(self.categories))
  if not lists then
    errors.blame("%s: it has not been fitted: encoder:fit(t) with the training data",
      class.of(self).__name)
  end
  return lists
end

--- Returns how many categories each column has.
function Categories:sizes()
  local sizes = {}
  for k, list in ipairs(self:lists()) do sizes[k] = #list end
  return sizes
end

--- Returns the ids i64 [N, columns] of a Table, or of lists by name; -1: missing or not known.
function Categories:ids(t)
  local who <const> = class.of(self).__name
  local columns, lists = {}, self:lists()
  for k, name in ipairs(self.names) do
    local places, ids = {}, {}
    for at, text in ipairs(lists[k]) do places[text] = at - 1 end
    for row, text in ipairs(texts_of(self, t, name, who)) do
      local id = places[text]
      if not id and text ~= "" and self.unknown == "error" then
        errors.blame("%s: %s is not a category of column %s in row %d", who, errors.show(text),
          errors.show(name), row)
      end
      ids[row] = id or -1
    end
    columns[k] = c.tensor(ids, { dtype = "i64" })
  end
  return c.stack(columns, 2)
end

function Categories:extra_repr() return table.concat(self.names, ", ") end

return Categories
