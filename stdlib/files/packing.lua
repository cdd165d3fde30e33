-- stdlib/files/packing.lua: separates the tensors of a nested state from its plain values, for
-- safetensors files, and joins them again.
--
-- A checkpoint is tensors by name and one text. `pack` replaces each tensor by a note of its name;
-- what is neither tensor, number, string, boolean nor a plain table of those is an error that names
-- its place.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local parts = require "ltrain.core.parts"
local tree = require "ltrain.core.tree"

local packing = {}

--- The metadata key of the text.
packing.KEY = "ltrain"
local HEADER_CRC <const> = "ltrain.crc32"

local TENSOR <const> = "$tensor" -- the first key of a table that stands for a tensor
local DEVICE <const> = "$device" -- where it was, if that is not the CPU and the file is to say it
local PAIRS <const> = "$pairs" -- the only key of a table whose keys are not all positions or names

local PLAIN <const> = { number = true, string = true, boolean = true }

local function is_sequence(value, keys)
  return #keys > 0 and keys[#keys] == #value and #keys == #value
end

local function below(name, key)
  return name == "" and tostring(key) or ("%s.%s"):format(name, key)
end

-- Keys that say what a table stands for are the notes' own.
local function is_note(keys)
  return type(keys[1]) == "string" and keys[1]:sub(1, 1) == "$"
end

--- Whether a value is a tensor, or a part of one.
function packing.is_tensor(value) return c.is_tensor(value) or parts.is(value) end

local function pack_tensor(run, tensor, name)
  if run.tensors[name] ~= nil then
    errors.blame("%s: two tensors would be called '%s' in the file", run.where, name)
  end
  run.tensors[name] = parts.is(tensor) and tensor or tensor:detach()
  local device = run.devices and tensor.device
  return { [TENSOR] = name, [DEVICE] = device and device ~= "cpu" and device or nil }
end

local pack

local function pack_pairs(run, value, keys, name)
  local list = {}
  for i, key in ipairs(keys) do list[i] = { key, pack(run, value[key], below(name, key)) } end
  return { [PAIRS] = list }
end

local function pack_table(run, value, name)
  local keys, mixed, other = tree.keys(value)
  if other ~= nil then
    errors.blame("%s: %s has a key that is neither a number nor a string: %s", run.where, name,
      errors.show(other))
  elseif run.open[value] then
    errors.blame("%s: %s contains itself", run.where, name)
  end
  run.open[value] = true
  local has_positions, result = math.type(keys[1]) == "integer", {}
  if mixed or is_note(keys) or has_positions and not is_sequence(value, keys) then
    result = pack_pairs(run, value, keys, name)
  else
    for _, key in ipairs(keys) do
      result[key] = pack(run, value[key], below(name, has_positions and key - 1 or key))
    end
  end
  run.open[value] = nil
  return result
end

function pack(run, value, name)
  if packing.is_tensor(value) then
    return pack_tensor(run, value, name)
  elseif PLAIN[type(value)] then
    return value
  elseif type(value) ~= "table" or getmetatable(value) ~= nil then
    errors.blame("%s: %s cannot be saved: it is %s", run.where,
      name == "" and "the value" or name, errors.show(value))
  end
  return pack_table(run, value, name)
end

--- What a table of a packed tree stands for: the name of a tensor, or nil and a list of pairs, or
--- nothing: itself.
function packing.note(value) return value[TENSOR], value[PAIRS] end

--- The tree without its tensors, which go into `tensors` under names that begin with `name` ("":
--- with the tree's own). `where` begins error texts; `devices`: whether the notes say where the
--- tensors are.
function packing.pack(value, name, tensors, where, devices)
  local run = { tensors = tensors, where = where or "save_checkpoint", open = {},
    devices = devices }
  return pack(run, value, name)
end

--- The tree again. A tensor that is not there is left out: the reader has checked that all are.
--- place(tensor, device), if given, returns what stands for a tensor that was on `device`.
function packing.unpack(value, tensors, place)
  if type(value) ~= "table" then return value end
  if value[TENSOR] then
    local tensor = tensors[value[TENSOR]]
    return tensor and place and place(tensor, value[DEVICE] or "cpu") or tensor
  end
  local result = {}
  if value[PAIRS] then
    for _, pair in ipairs(value[PAIRS]) do
      result[pair[1]] = packing.unpack(pair[2], tensors, place)
    end
    return result
  end
  for key, field in tree.pairs(value) do result[key] = packing.unpack(field, tensors, place) end
  return result
end

--- The metadata of a file: `text`, to which checksums of the tensors are added. The writer puts one
--- of the header in place of the zeros.
function packing.metadata(text, tensors)
  local sums = {}
  for name, tensor in next, tensors do sums[name] = c.io.crc32(tensor) end
  text.crc, text.sealed = sums, true
  return packing.sealed(text)
end

--- The metadata of a file whose text has its checksums.
function packing.sealed(text)
  return { [packing.KEY] = c.io.json_encode(text), [HEADER_CRC] = "00000000" }
end

--- The same for c.io.save_later, which computes the checksums: the metadata, and the JSON text in
--- whose place they come.
function packing.metadata_later(text)
  local mark = ("ltrain.sums.%p"):format(text)
  text.crc, text.sealed = mark, true
  return packing.sealed(text), ('"%s"'):format(mark)
end

-- What is wrong with the notes of a tree: one that names no tensor of the file, no list of pairs.
local function wrong_note(value, tensors)
  if type(value) ~= "table" then return nil end
  local name, pairs_of = value[TENSOR], value[PAIRS]
  if name ~= nil then
    if tensors[name] ~= nil then return nil end
    return ("damaged: tensor %s is missing"):format(errors.show(name))
  elseif pairs_of ~= nil then
    for _, pair in ipairs(type(pairs_of) == "table" and pairs_of or { false }) do
      local key = type(pair) == "table" and pair[1]
      if type(key) ~= "string" and type(key) ~= "number" or key ~= key then
        return "damaged: a table of pairs has no pairs"
      end
    end
  end
  for _, field in tree.pairs(pairs_of or value) do
    local wrong = wrong_note(field, tensors)
    if wrong then return wrong end
  end
end

-- What is wrong with the tensors by the checksums that a text has.
local function wrong_sum(text, metadata, tensors)
  local sums = text.crc or {}
  if type(sums) ~= "table" then
    return ("damaged: field 'crc' must be a table: got %s"):format(errors.show(sums))
  elseif text.sealed and not metadata[HEADER_CRC] then
    return "damaged: the checksum of the header is missing"
  end
  for name, sum in tree.pairs(sums) do
    if tensors[name] == nil then
      return ("damaged: tensor '%s' is missing"):format(name)
    elseif c.io.crc32(tensors[name]) ~= sum then
      return ("damaged: the bytes of tensor '%s' have changed"):format(name)
    end
  end
end

--- The text of a file that was written so, as a table that can be unpacked; nil and what is wrong
--- with it or with the tensors. `check(text)` is asked first. Older files have fewer checksums.
function packing.text(metadata, tensors, check)
  local text, message = c.io.json_decode(metadata[packing.KEY])
  if text == nil then return nil, message end
  if type(text) ~= "table" or math.type(text.format) ~= "integer" then
    return nil, ("the text under '%s' is not ltrain's"):format(packing.KEY)
  end
  local wrong = check(text) or wrong_sum(text, metadata, tensors) or wrong_note(text, tensors)
  if wrong then return nil, wrong end
  return text
end

return packing
