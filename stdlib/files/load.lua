-- stdlib/files/load.lua: lt.load, which reads what lt.save wrote, or any safetensors file.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local packing = require "ltrain.files.packing"

local FORMAT <const> = 1

local function wrong_format(text)
  if text.format > FORMAT then
    return ("format %d; this ltrain reads up to %d"):format(text.format, FORMAT)
  end
end

--- Returns the value that lt.save wrote; for other safetensors files a table of tensors by name,
--- and the metadata. Returns nil and the reason if the file cannot be read.
return function(path)
  if type(path) ~= "string" then
    errors.blame("load: the path must be a string: got %s", errors.show(path))
  end
  local tensors, metadata = c.io.load_safetensors(path)
  if not tensors then return nil, metadata end
  if not metadata[packing.KEY] then return tensors, metadata end
  local text, message = packing.text(metadata, tensors, wrong_format)
  if not text then return nil, ("load: %s: %s"):format(path, message) end
  if text.tree == nil then return tensors, metadata end
  return packing.unpack(text.tree, tensors)
end
