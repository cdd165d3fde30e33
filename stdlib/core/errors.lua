-- stdlib/core/errors.lua: raises errors at the user's line, and formats values for messages.
--
-- Our own chunks are named `=ltrain.<file>`. An error of wrong use is raised at the first frame of
-- the stack that is none of them, so that the reader sees the line that is to be changed.

local c = require "ltrain.c"

local errors = {}

--- The position "file:line: " of the nearest frame outside the library; "" when there is none.
errors.where = c.runtime.where

local read_file -- whose fields are being taken over, or nil

--- Until what it returns is closed errors of wrong use name the file that is being read as well as
--- its field.
function errors.reading(path)
  local before = read_file
  read_file = path
  return setmetatable({}, { __close = function() read_file = before end })
end

-- The text with `more` at the end of its first line.
local function with_note(message, more)
  return (message:gsub("^[^\n]*", function(first) return ("%s (%s)"):format(first, more) end, 1))
end

--- Raise `message` with the position of the user's line, and the path of the layer that is inside
--- of another, "(in Net.head)"; lt.last_error() knows it.
function errors.blame(message, ...)
  if select("#", ...) > 0 then message = message:format(...) end
  message = c.runtime.printable(message, "lines") -- a name in it moves no cursor
  if read_file and not message:find(read_file, 1, true) then
    message = with_note(message, "read from " .. errors.printable(read_file))
  end
  local where, path = c.runtime.note_error(message)
  if path and path:find "[.%[]" then message = with_note(message, "in " .. path) end
  error(where .. message, 0)
end

--- The word of the list that is nearest to `name`, at most two changes away (one for a word of up
--- to five letters, none for one letter); nil when none is.
errors.nearest = c.runtime.nearest

--- "; did you mean 'word'?" or "": the nearest word, or what another library calls so.
function errors.did_you_mean(name, names)
  if type(name) ~= "string" then return "" end
  local foreign_names = require "ltrain.core.foreign_names" -- by the first error alone
  local word = foreign_names.option(name, names) or errors.nearest(name, names)
  local note = not word and foreign_names.notes[name]
  return word and ("; did you mean '%s'?"):format(word) or note and "; " .. note or ""
end

--- "'hepl'; did you mean 'help'?" of a name that is not among `words`; nil of one that is.
function errors.unknown(name, names)
  for _, word in ipairs(names) do
    if word == name then return nil end
  end
  return errors.show(name) .. errors.did_you_mean(name, names)
end

--- For a name that a namespace lacks ("nn"; "lt": the library itself): "; write ..." where another
--- library has it, or why it is not here; else as did_you_mean.
function errors.in_place_of(name, namespace, names)
  local foreign_names = require "ltrain.core.foreign_names"
  local said = foreign_names.of(namespace, name, names)
  if said then return "; " .. said end
  local near, otherwise = errors.did_you_mean(name, names), foreign_names.rows(namespace)["?"]
  return near == "" and otherwise and "; " .. otherwise or near
end

--- "[64, 10]" of a tensor's shape.
function errors.show_shape(tensor)
  return ("[%s]"):format(table.concat(tensor.shape, ", "))
end

--- "rank 2" or "ranks 0, 2" of a list of them.
function errors.show_ranks(list)
  local parts, first = {}, 1
  for i = 1, #list do
    if list[i + 1] ~= list[i] + 1 then
      local form = i - first > 1 and "%d-%d" or i > first and "%d, %d" or "%d"
      parts[#parts + 1], first = form:format(list[first], list[i]), i + 1
    end
  end
  return ("rank%s %s"):format(#list > 1 and "s" or "", table.concat(parts, ", "))
end

--- The ranks of each text, in the order of the first: a list of { text, "ranks 0, 2-5" }, from a
--- list of { rank, text }.
function errors.group_ranks(list)
  local groups, ranks = {}, {}
  for _, one in ipairs(list) do
    local rank, text = one[1], one[2]
    if not ranks[text] then groups[#groups + 1], ranks[text] = { text }, {} end
    table.insert(ranks[text], rank)
  end
  for _, group in ipairs(groups) do group[2] = errors.show_ranks(ranks[group[1]]) end
  return groups
end

--- What ranks have, rank 0's first: "batch_size = 2 on ranks 0, 2-5; batch_size = 3 on rank 1".
function errors.show_by_rank(texts)
  local list = {}
  for i, text in ipairs(texts) do list[i] = { i - 1, text } end
  local groups, parts = errors.group_ranks(list), {}
  for i, group in ipairs(groups) do parts[i] = ("%s on %s"):format(group[1], group[2]) end
  return table.concat(parts, "; "), #groups
end

--- A text whose control characters, ends of lines too, and marks of direction are written as Lua
--- writes them: it moves no cursor, and reads as it is.
function errors.printable(text) return c.runtime.printable(text) end

--- A value as error texts name it: short, with the type where the value says too little.
function errors.show(value)
  local kind = type(value)
  if kind == "string" then
    value = errors.printable(value)
    return #value <= 60 and ("'%s'"):format(value) or ("'%s...'"):format(value:sub(1, 57))
  elseif kind == "number" or kind == "boolean" or kind == "nil" then
    return value ~= value and "nan" or tostring(value)
  end
  local meta = getmetatable(value)
  if meta == "ltrain.Tensor" then
    return "a tensor " .. errors.show_shape(value)
  elseif kind == "table" and rawget(value, "__name") then
    return tostring(value)
  end
  local name = type(meta) == "table" and rawget(meta, "__name")
  return name and "an object of class " .. name or "a " .. kind
end

local function comes_first(a, b)
  if type(a) == type(b) then return a < b end
  return type(a) == "number"
end

--- "{'x', code = 3}": the first fields of a plain table in an order of their own; nil: none.
function errors.show_fields(t)
  local keys, parts = {}, {}
  for key in next, t do
    if type(key) == "string" or math.type(key) then keys[#keys + 1] = key end
  end
  table.sort(keys, comes_first)
  for k = 1, math.min(#keys, 8) do
    local key, shown = keys[k], errors.show(t[keys[k]])
    parts[k] = type(key) == "string" and ("%s = %s"):format(key, shown)
      or key == k and shown or ("[%s] = %s"):format(key, shown)
  end
  return #keys > 0
    and ("{%s%s}"):format(table.concat(parts, ", "), #keys > 8 and ", ..." or "") or nil
end

return errors
