-- stdlib/files/save.lua: lt.save, which writes a tree of tensors and plain values to a file.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local packing = require "ltrain.files.packing"

local FORMAT <const> = 1

--- Writes nested tables of tensors, numbers, strings and booleans as one safetensors file; the name
--- of a tensor is its path. An existing file is replaced when the new one is complete. Returns
--- true, or nil and the reason.
return function(path, value)
  if type(path) ~= "string" then
    errors.blame("save: the path must be a string: got %s", errors.show(path))
  elseif value == nil then
    errors.blame("save: there is nothing to save")
  end
  local tensors = {}
  local name = type(value) == "table" and "" or "value"
  local text = { format = FORMAT, tree = packing.pack(value, name, tensors, "save", true) }
  return c.io.save_safetensors(path, tensors, packing.metadata(text, tensors))
end
