-- stdlib/files/torch_save.lua: writes what torch.load reads: a zip file of a pickle, data.pkl, and
-- the bytes of each storage, data/0, data/1, ... (ltrain.files.torch_file reads it).
--
-- The pickle has the instructions that torch.load(path, weights_only=True) allows: plain values,
-- and the calls that make tensors of storages. Tensors that share memory share a storage in the
-- file, of which only what they show is written.

local c = require "ltrain.c"
local dtypes = require "ltrain.core.dtypes"
local packing = require "ltrain.files.packing"
local tree = require "ltrain.core.tree"

local function integer(n)
  if n == n << 32 >> 32 then return "J" .. ("<i4"):pack(n) end
  return "\x8a\8" .. ("<i8"):pack(n)
end

local function unicode(text) return "X" .. ("<s4"):pack(text) end

-- What is not UTF-8 becomes bytes, which are pickled as the text that they are in Latin-1.
local function text(value)
  if utf8.len(value) then return unicode(value) end
  return "c_codecs\nencode\n" .. unicode((value:gsub("[\x80-\xff]", function(byte)
    return utf8.char(byte:byte())
  end))) .. unicode "latin1" .. "\x86R"
end

local function tuple(numbers)
  local parts = {}
  for k, n in ipairs(numbers) do parts[k] = integer(n) end
  return "(" .. table.concat(parts) .. "t"
end

-- The first and the last element of the storage that a tensor shows; one that is empty shows none.
local function extent(x, offset)
  local last = offset
  for k, stride in ipairs(x:stride()) do last = last + (x.shape[k] - 1) * stride end
  return offset, x:numel() > 0 and last or offset - 1
end

-- Which elements of which storages the tensors need, by storage and dtype; and each one's.
local function storages_of(tensors)
  local storages, of, by_id = {}, {}, {}
  for _, name in ipairs(tree.keys(tensors)) do
    local x = tensors[name]
    local memory, offset = c.io.storage(x)
    local id = x:numel() > 0 and ("%p %s"):format(memory, x.dtype) or name
    local first, last = extent(x, offset)
    local storage = by_id[id]
    if not storage then
      storage = { key = tostring(#storages), first = first, last = last, tensor = x }
      storages[#storages + 1], by_id[id] = storage, storage
    end
    storage.first, storage.last = math.min(storage.first, first), math.max(storage.last, last)
    of[name] = { storage = storage, offset = offset }
  end
  return storages, of
end

-- torch.FloatStorage and the like; of dtypes that have none bytes, and the dtype beside them.
local function class_of(row)
  if row.method == row.torch_name and row.name ~= "bf16" and row.name ~= "bool" then
    return "ctorch.storage\nUntypedStorage\n", row.size
  end
  local name = row.name == "bf16" and "BFloat16" or row.method:gsub("^%l", string.upper)
  return ("ctorch\n%sStorage\n"):format(name), 1
end

local function tensor(x, place)
  local row, storage = dtypes[x.dtype], place.storage
  local class, bytes = class_of(row)
  local at = x.device:find "^cuda" and x.device or "cpu"
  local id = "(" .. unicode "storage" .. class .. unicode(storage.key) .. unicode(at)
    .. integer((storage.last - storage.first + 1) * bytes) .. "tQ"
  local shape = integer(place.offset - storage.first) .. tuple(x.shape) .. tuple(x:stride())
    .. "\x89ccollections\nOrderedDict\n)R" -- without a gradient, and without hooks of it
  if bytes == 1 then return "ctorch._utils\n_rebuild_tensor_v2\n(" .. id .. shape .. "tR" end
  return ("ctorch._utils\n_rebuild_tensor_v3\n(%s%sctorch\n%s\ntR"):format(id, shape,
    row.torch_name)
end

local pickle

local function dict(run, list)
  local parts = {}
  for _, pair in ipairs(list) do
    local key, value = pair[1], pair[2]
    parts[#parts + 1] = (type(key) == "string" and text(key) or pickle(run, key))
      .. pickle(run, value)
  end
  return "}(" .. table.concat(parts) .. "u"
end

-- The instructions that make a value of the packed tree.
function pickle(run, value)
  local kind = type(value)
  if kind == "boolean" then return value and "\x88" or "\x89" end
  if kind == "string" then return text(value) end
  if math.type(value) == "integer" then return integer(value) end
  if kind == "number" then return "G" .. (">d"):pack(value) end
  local name, pairs_of = packing.note(value)
  if name then return tensor(run.tensors[name], run.places[name]) end
  if pairs_of then return dict(run, pairs_of) end
  local keys, list = tree.keys(value), {}
  if math.type(keys[1]) == "integer" then
    for k, element in ipairs(value) do list[k] = pickle(run, element) end
    return "](" .. table.concat(list) .. "e"
  end
  for k, key in ipairs(keys) do list[k] = { key, value[key] } end
  return dict(run, list)
end

--- Writes a packed tree (ltrain.files.packing) and its tensors. Returns true, or nil and why not.
return function(path, packed, tensors)
  local storages, places = storages_of(tensors)
  local run = { tensors = tensors, places = places }
  local names = { "archive/data.pkl", "archive/byteorder", "archive/version" }
  local contents = { "\x80\2" .. pickle(run, packed) .. ".", "little", "3\n" }
  for _, storage in ipairs(storages) do
    names[#names + 1] = "archive/data/" .. storage.key
    contents[#contents + 1] = c.io.span(storage.tensor, storage.first,
      storage.last - storage.first + 1)
  end
  return c.io.zip_save(path, names, contents)
end
