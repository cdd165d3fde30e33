-- stdlib/files/torch_file.lua: files of torch.save (.pt, .pth): a zip file of a pickle, data.pkl,
-- and the bytes of each storage, data/0, data/1, ...
--
-- Of the pickle only plain values and tensors are read (ltrain.files.pickle), so that opening a
-- file runs no code. Tensors that share a storage in PyTorch share its memory here.

local c = require "ltrain.c"
local dtypes = require "ltrain.core.dtypes"
local errors = require "ltrain.core.errors"
local pickle = require "ltrain.files.pickle"

local torch_file = {}

local MAX_DIMS <const> = 8
local MAX_PICKLE <const> = 1 << 28

-- A pickle without a zip file, as PyTorch wrote before 1.6, begins with its magic number.
local OLD <const> = "\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"

--- Whether a file begins as one of torch.save: true, false, or nil and why it cannot be read.
function torch_file.is(path)
  local head, message = c.io.read_head(path, #OLD)
  if not head then return nil, message end
  if head:sub(1, 6) == "\x93NUMPY" then
    return nil, ("load: %s: is an array of NumPy: lt.numpy.load reads it"):format(path)
  end
  if head == OLD then
    return nil, ("load: %s: is in the format that PyTorch had before 1.6: load it there, and "
      .. "torch.save it again"):format(path)
  end
  return head:sub(1, 4) == "PK\3\4" and head:sub(9, 9) ~= "{" -- else a header of 67 MB
end

local function damaged(machine, what) machine:fail("is damaged: a tensor %s", what) end

-- A tuple of `count` integers; the shapes of tensors are small.
local function integers(machine, tuple)
  local count = machine.counts[tuple]
  if machine.kinds[tuple] ~= "tuple" then damaged(machine, "has no shape") end
  if count > MAX_DIMS then machine:fail("holds a tensor of more than %d dimensions", MAX_DIMS) end
  for i = 1, count do
    if math.type(tuple[i]) ~= "integer" then damaged(machine, "has no shape") end
  end
  return tuple
end

-- All of a storage, a tensor of one dim.
local function flat(machine, storage, dtype)
  if storage.flat then
    if storage.flat.dtype == dtype then return storage.flat end
    machine:fail("holds tensors of two dtypes that share memory: %s and %s", storage.flat.dtype,
      dtype)
  elseif storage.bytes % dtypes[dtype].size ~= 0 then
    damaged(machine, "ends within an element")
  end
  local tensor, message = machine.zip:tensor(storage.member, dtype)
  if not tensor then error({ pickle = message, whole = true }, 0) end
  storage.flat = tensor
  return tensor
end

local function tensor_of(machine, args, dtype, metadata)
  local storage, offset = args[1], args[2]
  if machine.kinds[storage] ~= "storage" or math.type(offset) ~= "integer" then
    damaged(machine, "has no storage")
  elseif metadata ~= nil then
    machine:fail "holds a tensor that is conjugated or negated: save tensor.resolve_conj()"
  end
  dtype = dtype or storage.dtype
  if not dtype then damaged(machine, "has no dtype") end
  local size, stride = integers(machine, args[3]), integers(machine, args[4])
  local tensor = c.io.strided(flat(machine, storage, dtype), offset, size, stride)
  if not tensor then damaged(machine, "is outside of its storage") end
  machine.locations[tensor] = storage.location
  return tensor
end

local NAMES <const> = {
  ["collections.OrderedDict"] = { call = function(machine, _, count)
    if count > 0 then machine:fail "holds an OrderedDict of Python 2: save it from Python 3" end
    return machine:new "dict"
  end },
  ["torch.Size"] = { call = function(machine, args) return integers(machine, args[1]) end },
  ["torch._utils._rebuild_tensor_v2"] = { call = function(machine, args)
    return tensor_of(machine, args, nil, args[7])
  end },
  ["torch._utils._rebuild_tensor_v3"] = { call = function(machine, args)
    local token = args[7]
    if machine.kinds[token] ~= "name" or not token.dtype then damaged(machine, "has no dtype") end
    return tensor_of(machine, args, token.dtype, args[8])
  end },
  ["torch._utils._rebuild_parameter"] = { call = function(machine, args)
    if not c.is_tensor(args[1]) then damaged(machine, "is none, and a parameter") end
    return args[1]
  end },
  ["torch.storage.UntypedStorage"] = { is_storage = true },
}

local OTHER_DTYPES <const> = { "^torch%.%l*int%d+$", "^torch%.float%d", "^torch%.complex%d",
  "^torch%.bfloat%d", "^torch%.%w+Storage$" }

local function find(machine, name)
  local known, short = NAMES[name], name:match "^torch%.(.*)$" or ""
  if known then return { call = known.call, is_storage = known.is_storage } end
  local storage = short:match "^(%w+)Storage$"
  local row = dtypes[(storage or short):lower()]
  if row and storage and row.method == storage:lower() then
    return { dtype = row.name, is_storage = true }
  elseif row and row.torch_name == short then
    return { dtype = row.name }
  end
  for _, pattern in ipairs(OTHER_DTYPES) do
    if name:find(pattern) then
      machine:fail("holds %s, a dtype that ltrain does not have", errors.printable(name))
    end
  end
end

-- ("storage", the class of storages, key, location, count of elements)
local function persistent(machine, id)
  local class, key, location, count = id[2], id[3], id[4], id[5]
  if id[1] ~= "storage" or machine.kinds[class] ~= "name" or not class.is_storage
    or type(key) ~= "string" or type(location) ~= "string" or math.type(count) ~= "integer" then
    machine:fail "is damaged: a storage has no name"
  end
  local known = machine.storages[key]
  if not known then
    local member = ("%s/data/%s"):format(machine.prefix, key)
    known = { member = member, bytes = machine.zip:size(member), dtype = class.dtype,
      location = location }
    if not known.bytes then
      machine:fail("is damaged: storage %s is missing", errors.printable(key))
    end
    machine.storages[key], machine.kinds[known] = known, "storage"
  end
  local item = class.dtype and dtypes[class.dtype].size or 1
  if known.bytes % item ~= 0 or known.bytes // item ~= count or known.dtype ~= class.dtype then
    machine:fail("is damaged: storage %s has not its size", errors.printable(key))
  end
  return known
end

-- The folder of the file that all members are in; nil and what the file is instead.
local function prefix_of(zip)
  local prefix
  for _, name in ipairs(zip:names()) do
    local folder, leaf = name:match "^([^/]*)/([^/]*)$"
    if leaf == "constants.pkl" then return nil, "is TorchScript: torch.save its state_dict()" end
    if name:find "%.npy$" then return nil, "holds arrays of NumPy: lt.numpy.load reads it" end
    if leaf == "data.pkl" then
      if prefix then return nil, "is damaged: it has two data.pkl" end
      prefix = folder
    end
  end
  if prefix then return prefix end
  return nil, "is a zip file, but none of torch.save: it has no data.pkl"
end

-- The text of the pickle; nil and why there is none.
local function read_pickle(zip, prefix)
  local order, name = prefix .. "/byteorder", prefix .. "/data.pkl"
  if zip:size(order) then
    local text, message = zip:read(order)
    if not text then return nil, message, true end
    if text ~= "little" then
      return nil, ("was written in %s byte order, only little is read"):format(
        errors.printable(text:sub(1, 20)))
    end
  end
  if zip:size(name) > MAX_PICKLE then return nil, "has a pickle of more than 256 MiB" end
  local text, message = zip:read(name)
  return text, message, true
end

local function read(zip, locations)
  local prefix, message = prefix_of(zip)
  if not prefix then return nil, message end
  local text, why, whole = read_pickle(zip, prefix)
  if not text then return nil, why, whole end
  return pickle(text, find, persistent,
    { zip = zip, prefix = prefix, storages = {}, locations = locations })
end

-- The same tables, with each tensor where place(tensor, location) says; tables that are in several
-- places stay one.
local function placed(value, place, locations, done)
  if c.is_tensor(value) then
    done[value] = done[value] or place(value, locations[value])
    return done[value]
  elseif type(value) ~= "table" or done[value] then
    return value
  end
  done[value] = true
  for key, held in next, value do value[key] = placed(held, place, locations, done) end
  return value
end

--- The value that torch.save wrote; nil and why it cannot be read. `place`, which may be nil, gets
--- each tensor and the device that it was on. `unchecked`: bytes of tensors are not read, nor
--- compared with their CRC, before they are looked at.
function torch_file.load(path, place, unchecked)
  local zip <close>, refused = c.io.open_zip(path, false, unchecked)
  if not zip then return nil, refused end
  local locations = {}
  local value, message, whole = read(zip, locations)
  if value == nil then return nil, whole and message or ("load: %s: %s"):format(path, message) end
  return place and placed(value, place, locations, {}) or value
end

return torch_file
