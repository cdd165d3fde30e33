-- stdlib/core/hash.lua: lt.hash, a hash of a tensor or a tree of tensors.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local DEEPEST <const> = 10000

-- What stands before a tensor's bytes, or in place of a plain value; nil for what is neither.
local function line_of(name, value)
  local kind = math.type(value) or type(value)
  if c.is_tensor(value) then
    return ("%s %s [%s]\n"):format(name, value.dtype, table.concat(value.shape, ", "))
  elseif kind == "integer" or kind == "boolean" then
    return ("%s %s %s\n"):format(name, kind, value)
  elseif kind == "float" then
    return ("%s float %s\n"):format(name, value ~= value and "nan" or ("%a"):format(value))
  elseif kind == "string" then
    return ("%s string %d %s\n"):format(name, #value, value)
  end
end

local function add_leaf(value, keys, names, list)
  local name = table.concat(names, ".")
  local line = line_of(name, value)
  if not line then
    errors.blame("hash: %s is neither tensor, table, number, string nor boolean: got %s",
      tree.path("value", keys), errors.show(value))
  end
  list[#list + 1] = { name = name, line = line, tensor = c.is_tensor(value) and value or nil }
end

-- The leaves below `value`: {name =, line =, tensor =}, tensor nil for plain values. `names`: the
-- keys as they stand in names.
local function collect(value, keys, names, list, open)
  if type(value) ~= "table" or getmetatable(value) ~= nil then
    return add_leaf(value, keys, names, list)
  elseif open[value] then
    errors.blame("hash: %s contains itself", tree.path("value", keys))
  elseif #keys == DEEPEST then
    list.too_deep = true -- reported where the line of the script can be found
    return
  end
  open[value] = true
  for key, field in tree.pairs(value) do
    local depth = #keys + 1
    keys[depth], names[depth] = key, tree.name_of(key)
    collect(field, keys, names, list, open)
    keys[depth], names[depth] = nil, nil
  end
  open[value] = nil
end

--- Returns the SHA-256 of a tensor or a table of tensors and plain values, as 64 hex digits: over
--- the names in order, each with dtype, shape and bytes. lt.hash(net:state_dict()) is what `ltrain
--- hash FILE` prints for a checkpoint of net.
return function(value)
  local list, parts = {}, {}
  collect(value, {}, {}, list, {})
  if list.too_deep then
    errors.blame("hash: tables are nested more than %d deep", DEEPEST)
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  for _, leaf in ipairs(list) do
    parts[#parts + 1] = leaf.line
    parts[#parts + 1] = leaf.tensor
  end
  return c.runtime.sha256(parts)
end
