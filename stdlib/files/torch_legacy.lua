-- stdlib/files/torch_legacy.lua: the format of torch.save before PyTorch 1.6, which torchvision's
-- older files have: five pickles one after another (a magic number, the version, facts of the
-- system, the value, the keys of its storages), then each storage: the count of its elements in 8
-- bytes, and the elements.
--
-- Where a storage is follows from the sizes of those before it, which the value's pickle names:
-- that is read twice, first for these alone.

local c = require "ltrain.c"
local dtypes = require "ltrain.core.dtypes"
local pickle = require "ltrain.files.pickle"
local pickle_globals = require "ltrain.files.pickle_globals"

local torch_legacy = {}

local MAGIC <const> = "\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." -- an integer, the end of its pickle
--- Bytes of a file that decide.
torch_legacy.HEAD = 11 + #MAGIC -- the protocol and, from its version 4 on, a frame come first

local VERSION <const> = 1001
local PART <const>, MAX_PICKLES <const> = 1 << 16, 1 << 28 -- bytes: read first, at most
local MAX_ELEMENTS <const> = 1 << 48

--- Where the second pickle begins in a file of this format, by its first bytes; nil: it is another.
function torch_legacy.second(head)
  local from, to = head:sub(1, torch_legacy.HEAD):find(MAGIC, 1, true)
  return from and head:find "^\x80[\2-\5]" and to + 1 or nil
end

-- The storages of a file: key -> { begin =, count =, item = }.
local Storages <const> = {}
Storages.__index = Storages

function Storages:size(key)
  local place = self.places[key]
  return place and place.count * place.item
end

function Storages:tensor(key, dtype)
  local place, path = self.places[key], self.path
  local count = c.io.memmap(path, "i64", place.begin - 8, { 1 })
  local tensor = c.io.memmap(path, dtype, place.begin, { self:size(key) // dtypes[dtype].size })
  if not tensor then return nil, ("load: %s: is damaged: it ends too early"):format(path) end
  if count:item() ~= place.count then
    return nil, ("load: %s: is damaged: storage %s has not its size"):format(path, key)
  end
  return tensor
end

-- In the first reading what a call makes is of no interest.
local function find_object(_, name)
  local token = pickle_globals.find(nil, name)
  token.call = function(machine) return machine:object { name = name, parts = {} } end
  return token
end

-- Notes the sizes of storages in `machine.sizes`.
local function note_size(machine, id)
  local class, key, count = id[2], id[3], id[5]
  if machine.kinds[class] ~= "name" or type(key) ~= "string" or math.type(count) ~= "integer"
    or count < 0 or count > MAX_ELEMENTS then
    machine:fail "is damaged: a storage has no name"
  elseif id[6] ~= nil then
    machine:fail "contains views of storages, as PyTorch wrote before 0.4: save it again there"
  end
  pickle_globals.check_dtype(machine, class)
  machine.sizes[key] = { count = count, item = class.dtype and dtypes[class.dtype].size or 1 }
  return machine:object { name = "a storage", parts = {} }
end

local function refuse_storage(machine) machine:fail "is damaged: a storage is out of place" end

-- The value's place in `text`, and the storages; nil and what is wrong with the pickles.
local function parse(text, path)
  local function plain(at)
    return pickle(text, at, find_object, refuse_storage, { left_out = {} })
  end
  local version, at = plain(torch_legacy.second(text))
  if not version then return nil, at end
  if version ~= VERSION then return nil, { pickle = "is of an unknown version of its format" } end
  local system, begin = plain(at)
  if not system then return nil, begin end
  if type(system) ~= "table" or system.little_endian ~= true then
    return nil, { pickle = "was written in big byte order, only little is read" }
  end
  local sizes = {}
  local skimmed, after = pickle(text, begin, find_object, note_size, { skims = true,
    sizes = sizes })
  if not skimmed then return nil, after end
  local keys, place = plain(after)
  if not keys then return nil, place end
  local places = {}
  for _, key in ipairs(type(keys) == "table" and keys or {}) do
    local size = sizes[key]
    if not size or places[key] then return nil, { pickle = "is damaged: it has other storages" } end
    places[key] = { begin = place - 1 + 8, count = size.count, item = size.item }
    place = place + 8 + size.count * size.item
  end
  return begin, setmetatable({ path = path, places = places }, Storages)
end

--- The pickles as a text, where that of the value begins, and the storages by their keys:
--- `size(key)` in bytes, `tensor(key, dtype)`; else nil and { pickle = what is wrong, whole = }.
function torch_legacy.open(path)
  local bytes = PART
  while true do
    local text, size = c.io.read_head(path, bytes)
    if not text then return nil, { pickle = size, whole = true } end
    local begin, found = parse(text, path)
    if begin then return text, begin, found end
    if not found.short or bytes >= size or bytes >= MAX_PICKLES then return nil, found end
    bytes = bytes * 16
  end
end

return torch_legacy
