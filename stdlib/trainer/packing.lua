--- stdlib/trainer/packing.lua: takes the tensors out of a tree of saved state, and puts them back.
--
-- A checkpoint is tensors by name and one text. `pack` replaces each tensor by a note of its name;
-- what is neither tensor, number, string, boolean nor a plain table of those is an error that names
-- its place.
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local packing = {}

local TENSOR <const> = "$tensor" -- the only key of a table that stands for a tensor
local PAIRS <const> = "$pairs" -- the only key of a table whose keys are not all positions or names

local PLAIN <const> = { number = true, string = true, boolean = true }

local function is_sequence(value, keys)
  return #keys > 0 and keys[#keys] == #value and #keys == #value
end

local pack

local function pack_pairs(value, keys, name, tensors)
  local list = {}
  for i, key in ipairs(keys) do
    list[i] = { key, pack(value[key], ("%s.%s"):format(name, key), tensors) }
  end
  return { [PAIRS] = list }
end

function pack(value, name, tensors)
  if type(value) == "userdata" then
    tensors[name] = value:detach()
    return { [TENSOR] = name }
  elseif PLAIN[type(value)] then
    return value
  elseif type(value) ~= "table" or getmetatable(value) ~= nil then
    errors.blame("save_checkpoint: %s cannot be saved: it is %s", name, errors.show(value))
  end
  local keys, mixed, other = tree.keys(value)
  if other ~= nil then
    errors.blame("save_checkpoint: %s has a key that is neither a number nor a string: %s", name,
      errors.show(other))
  end
  local has_positions = math.type(keys[1]) == "integer"
  if mixed or has_positions and not is_sequence(value, keys) then
    return pack_pairs(value, keys, name, tensors)
  end
  local result = {}
  for _, key in ipairs(keys) do
    local shown = has_positions and key - 1 or key
    result[key] = pack(value[key], ("%s.%s"):format(name, shown), tensors)
  end
  return result
end

--- The tree without its tensors, which go into `tensors` under names that begin with `name`.
function packing.pack(value, name, tensors)
  return pack(value, name, tensors)
end

--- The tree again. A tensor that is not there is left out: the reader has checked that all are.
function packing.unpack(value, tensors)
  if type(value) ~= "table" then return value end
  if value[TENSOR] then return tensors[value[TENSOR]] end
  local result = {}
  if value[PAIRS] then
    for _, pair in ipairs(value[PAIRS]) do result[pair[1]] = packing.unpack(pair[2], tensors) end
    return result
  end
  for key, held in tree.pairs(value) do result[key] = packing.unpack(held, tensors) end
  return result
end

return packing
