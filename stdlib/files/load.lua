-- stdlib/files/load.lua: lt.load, which reads what lt.save wrote, any safetensors file, and files
-- of torch.save.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local map_location = require "ltrain.files.map_location"
local packing = require "ltrain.files.packing"
local sharded_reader = require "ltrain.files.sharded_reader"
local torch_file = require "ltrain.files.torch_file"

local FORMAT <const> = 1

local function wrong_format(text)
  if text.format > FORMAT then
    return ("format %d; this ltrain reads up to %d"):format(text.format, FORMAT)
  end
end

local ROWS <const> = config.signature {
  { "map_location", type = map_location.ROW.type, doc = map_location.ROW.doc },
  { "metadata", type = "boolean", default = false,
    doc = "also return the metadata of a safetensors file, a table of strings; otherwise the "
      .. "value is the only result, so that `assert(lt.load(path))` can be an argument" },
}

-- Files of others do not say where their tensors were.
local function place_all(tensors, place)
  for name, tensor in next, tensors do
    if place then tensors[name] = place(tensor, "cpu") end
  end
  return tensors
end

-- The value of a safetensors file or of a sharded checkpoint, and the metadata unless lt.save wrote
-- it; nil and why it cannot be read.
local function read_safetensors(path, place)
  if sharded_reader.is(path) then
    local tensors, metadata = sharded_reader.load(path)
    if not tensors then return nil, "load: " .. metadata:gsub("^load: ", "") end
    return place_all(tensors, place), metadata
  end
  local tensors, metadata = c.io.load_safetensors(path)
  if not tensors then return nil, metadata end
  if not metadata[packing.KEY] then return place_all(tensors, place), metadata end
  local text, message = packing.text(metadata, tensors, wrong_format)
  if not text then return nil, ("load: %s: %s"):format(path, message) end
  if text.tree == nil then return place_all(tensors, place), metadata end
  return packing.unpack(text.tree, tensors, place)
end

--- Returns the value that lt.save or torch.save wrote; for other safetensors files, and sharded
--- checkpoints, a table of tensors by name. From a file of torch.save (.pt, .pth, .tar; also from
--- before PyTorch 1.6) it reads tensors, numbers, strings, booleans, None (nil), and lists, tuples,
--- sets and dicts of these; a Namespace becomes a table, a NumPy number a number, a NumPy array a
--- tensor, a dtype or device its name. No code in the file is run: other objects are omitted, with
--- one warning that names them; if they contain tensors, loading fails. Tensors are loaded on the
--- CPU, whichever device they were saved from, unless `map_location` is given. Returns nil and the
--- reason if the file cannot be read.
return function(path, ...)
  local o <const> = config.arguments("load", ROWS, ...)
  local place = map_location.place(o.map_location, "load")
  if type(path) ~= "string" then
    errors.blame("load: the path must be a string: got %s", errors.show(path))
  end
  local is_torch, why = false, nil
  if not sharded_reader.is(path) then is_torch, why = torch_file.is(path) end
  if is_torch == nil then return nil, why end
  if is_torch then return torch_file.load(path, place) end
  local value, metadata = read_safetensors(path, place)
  if value == nil or o.metadata then return value, metadata end
  return value
end
