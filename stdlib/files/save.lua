-- stdlib/files/save.lua: lt.save, which writes a tree of tensors and plain values to a file.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local packing = require "ltrain.files.packing"

local FORMAT <const> = 1

--- Writes nested tables of tensors, numbers, strings and booleans as one safetensors file; a
--- tensor's name is its path. The former file stays until the new one is whole. Returns true, or
--- nil and why it could not be written.
return function(path, value)
  if type(path) ~= "string" then
    errors.blame("save: the path must be a string: got %s", errors.show(path))
  elseif value == nil then
    errors.blame("save: there is nothing to save")
  end
  local tensors = {}
  local name = type(value) == "table" and "" or "value"
  local text = { format = FORMAT, tree = packing.pack(value, name, tensors, "save") }
  return c.io.save_safetensors(path, tensors, packing.metadata(text, tensors))
end
