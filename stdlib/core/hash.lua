-- stdlib/core/hash.lua: lt.hash, a name for what a tensor or a tree of tensors holds.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

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

local function add_leaf(value, keys, list)
  local name = tree.name(keys)
  local line = line_of(name, value)
  if not line then
    errors.blame("hash: %s is neither tensor, table, number, string nor boolean: got %s",
      tree.path("value", keys), errors.show(value))
  end
  list[#list + 1] = { name = name, line = line, tensor = c.is_tensor(value) and value or nil }
end

-- The leaves below `value`: {name =, line =, tensor =}, tensor nil for plain values.
local function collect(value, keys, list, open)
  if type(value) ~= "table" or getmetatable(value) ~= nil then
    return add_leaf(value, keys, list)
  elseif open[value] then
    errors.blame("hash: %s contains itself", tree.path("value", keys))
  end
  open[value] = true
  for key, held in tree.pairs(value) do
    keys[#keys + 1] = key
    collect(held, keys, list, open)
    keys[#keys] = nil
  end
  open[value] = nil
end

--- SHA-256 of a tensor or of a table of tensors and plain values, as 64 hex digits: taken over the
--- names in order, each with dtype, shape and bytes. lt.hash(net:state_dict()) is what
--- `ltrain hash FILE` prints for a checkpoint of net.
return function(value)
  local list, parts = {}, {}
  collect(value, {}, list, {})
  table.sort(list, function(a, b) return a.name < b.name end)
  for _, leaf in ipairs(list) do
    parts[#parts + 1] = leaf.line
    parts[#parts + 1] = leaf.tensor
  end
  return c.runtime.sha256(parts)
end
