-- stdlib/files/torch_file.lua: files of torch.save (.pt, .pth): a zip file of a pickle, data.pkl,
-- and the bytes of each storage, data/0, data/1, ... Of before 1.6: ltrain.files.torch_legacy.
--
-- Of the pickle only plain values and tensors are read (ltrain.files.pickle), so that opening a
-- file runs no code. Tensors that share a storage in PyTorch share its memory here.

local c = require "ltrain.c"
local console = require "ltrain.core.console"
local dtypes = require "ltrain.core.dtypes"
local errors = require "ltrain.core.errors"
local pickle = require "ltrain.files.pickle"
local pickle_globals = require "ltrain.files.pickle_globals"
local torch_legacy = require "ltrain.files.torch_legacy"
local tree = require "ltrain.core.tree"

local torch_file = {}

local MAX_PICKLE <const> = 1 << 28

--- Whether a file begins as one of torch.save: true, false, or nil and why it cannot be read.
function torch_file.is(path)
  local head, message = c.io.read_head(path, torch_legacy.HEAD)
  if not head then return nil, message end
  if head:sub(1, 6) == "\x93NUMPY" then
    return nil, ("load: %s: is a NumPy array: lt.numpy.load reads it"):format(path)
  end
  if torch_legacy.second(head) then return true end
  return head:sub(1, 4) == "PK\3\4" and head:sub(9, 9) ~= "{" -- else a header of 67 MB
end

-- ("storage", the class of storages, key, location, count of elements)
local function persistent(machine, id)
  local class, key, location, count = id[2], id[3], id[4], id[5]
  if machine.kinds[class] == "name" then pickle_globals.check_dtype(machine, class) end
  if id[1] ~= "storage" or machine.kinds[class] ~= "name" or not class.is_storage
    or type(key) ~= "string" or type(location) ~= "string" or math.type(count) ~= "integer" then
    machine:fail "is damaged: a storage has no name"
  end
  local known = machine.storages[key]
  if not known then
    known = { key = key, bytes = machine.source:size(key), dtype = class.dtype,
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
    if name:find "%.npy$" then return nil, "contains NumPy arrays: lt.numpy.load reads it" end
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

-- The storages of a zip file, by their keys.
local Members <const> = {}
Members.__index = Members

function Members:name(key) return ("%s/data/%s"):format(self.prefix, key) end
function Members:size(key) return self.zip:size(self:name(key)) end
function Members:tensor(key, dtype) return self.zip:tensor(self:name(key), dtype) end

-- What torch.save wrote, from the pickle in `text`.
local function unpickle(text, at, source, found)
  return pickle(text, at, pickle_globals.find, persistent, { source = source, storages = {},
    locations = found.locations, left_out = found.left_out })
end

-- Its value; nil and { pickle = message, whole = } otherwise.
local function read_zip(path, found, unchecked)
  local zip <close>, refused = c.io.open_zip(path, false, unchecked)
  if not zip then return nil, { pickle = refused, whole = true } end
  local prefix, message = prefix_of(zip)
  if not prefix then return nil, { pickle = message } end
  local text, why, whole = read_pickle(zip, prefix)
  if not text then return nil, { pickle = why, whole = whole } end
  return unpickle(text, 1, setmetatable({ zip = zip, prefix = prefix }, Members), found)
end

local function read_legacy(path, found)
  local text, at, source = torch_legacy.open(path)
  if not text then return nil, at end
  return unpickle(text, at, source, found)
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
  for key, element in next, value do value[key] = placed(element, place, locations, done) end
  return value
end

-- One warning of all that a value lacks.
local function report(path, left_out)
  local names = tree.keys(left_out)
  for k, name in ipairs(names) do names[k] = errors.printable(name) end
  if #names > 0 then
    console.warn(("load: %s: left out, being neither tensors nor plain values: %s"):format(path,
      table.concat(names, ", ")))
  end
end

--- The value that torch.save wrote; nil and why it cannot be read. `place`, which may be nil, gets
--- each tensor and the device that it was on. `unchecked`: bytes of tensors are not read, nor
--- compared with their CRC, before they are checked.
function torch_file.load(path, place, unchecked)
  local found = { locations = {}, left_out = {} }
  local head, why = c.io.read_head(path, torch_legacy.HEAD)
  if not head then return nil, why end
  local read = torch_legacy.second(head) and read_legacy or read_zip
  local value, wrong = read(path, found, unchecked)
  if value == nil then
    return nil, wrong.whole and wrong.pickle or ("load: %s: %s"):format(path, wrong.pickle)
  end
  report(path, found.left_out)
  return place and placed(value, place, found.locations, {}) or value
end

return torch_file
