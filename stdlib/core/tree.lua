-- stdlib/core/tree.lua: walks over nested tables in an order that every process agrees on.
--
-- Sequences go by index, string keys sorted; never bare `pairs`, whose order differs between
-- processes. A tree is a table without metatable; everything else in it is a leaf.

local errors = require "ltrain.core.errors"

local tree = {}

--- The keys of a table: integers ascending, then strings sorted. The second result is true when
--- there are both, the third a key that is neither.
function tree.keys(t)
  local numbers, strings, other = {}, {}, nil
  for key in next, t do
    if math.type(key) == "integer" then
      numbers[#numbers + 1] = key
    elseif type(key) == "string" then
      strings[#strings + 1] = key
    else
      other = key
    end
  end
  table.sort(numbers)
  table.sort(strings)
  local mixed = #numbers > 0 and #strings > 0
  return table.move(strings, 1, #strings, #numbers + 1, numbers), mixed, other
end

--- `for key, value in tree.pairs(t)`: pairs in the order of `keys`.
function tree.pairs(t)
  local keys, i = tree.keys(t), 0
  return function()
    i = i + 1
    return keys[i], t[keys[i]]
  end
end

--- Keys as a Lua path below `root`: `Net.net[1]`.
function tree.path(root, keys)
  local parts = { root }
  for _, key in ipairs(keys) do
    if type(key) == "string" and key:find("^[%a_][%w_]*$") then
      parts[#parts + 1] = "." .. key
    else
      parts[#parts + 1] = type(key) == "string" and ("[%q]"):format(key)
        or ("[%s]"):format(tostring(key))
    end
  end
  return table.concat(parts)
end

--- A key as it stands in the names of tensors: positions count from 0.
function tree.name_of(key)
  return math.type(key) == "integer" and tostring(key - 1) or tostring(key)
end

--- Keys as the name of a tensor in files: `net.0.weight`.
function tree.name(keys)
  local parts = {}
  for i, key in ipairs(keys) do parts[i] = tree.name_of(key) end
  return table.concat(parts, ".")
end

local function is_branch(value)
  return type(value) == "table" and getmetatable(value) == nil
end

-- Builds the tree of fn(leaf, keys). `open` holds the tables from the root to here.
local function map(value, fn, keys, open)
  if not is_branch(value) then return fn(value, keys) end
  local found, mixed, other = tree.keys(value)
  if open[value] then
    errors.blame("tree: %s contains itself", tree.path("tree", keys))
  elseif mixed then
    errors.blame("tree: %s has both positions and names", tree.path("tree", keys))
  elseif other ~= nil then
    errors.blame("tree: %s has a key that is neither a position nor a name: %s",
      tree.path("tree", keys), errors.show(other))
  end
  open[value] = true
  local result = {}
  for _, key in ipairs(found) do
    keys[#keys + 1] = key
    result[key] = map(value[key], fn, keys, open)
    keys[#keys] = nil
  end
  open[value] = nil
  return result
end

--- The same tree with fn(leaf, keys) in place of each leaf. `keys` is reused: copy what you keep.
function tree.map(value, fn)
  return map(value, fn, {}, {})
end

--- fn(leaf, keys) for each leaf, in order.
function tree.each(value, fn)
  map(value, function(leaf, keys) fn(leaf, keys) end, {}, {})
end

--- The leaves as a list of { name = , value = }.
function tree.leaves(value)
  local list = {}
  tree.each(value, function(leaf, keys)
    list[#list + 1] = { name = tree.name(keys), value = leaf }
  end)
  return list
end

return tree
