-- stdlib/files/save.lua: lt.save, which writes a tree of tensors and plain values to a file.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local is_torch_name = require "ltrain.files.is_torch_name"
local packing = require "ltrain.files.packing"

local FORMAT <const> = 1

--- Writes nested tables of tensors, numbers, strings and booleans as one safetensors file; the name
--- of a tensor is its path. A file whose name ends with .pt or .pth gets PyTorch's format instead,
--- which torch.load reads (with weights_only too): sequences become lists, other tables dicts.
--- lt.load reads both. An existing file is replaced when the new one is complete. Returns true, or
--- nil and the reason. PyTorch's order, lt.save(value, path), is also accepted.
return function(path, value)
  if type(value) == "string" and (type(path) == "table" or c.is_tensor(path)) then
    path, value = value, path
  end
  if type(path) ~= "string" then
    errors.blame("save: the path must be a string: got %s", errors.show(path))
  elseif value == nil then
    errors.blame("save: there is nothing to save")
  end
  local tensors = {}
  local name = type(value) == "table" and "" or "value"
  local as_torch = is_torch_name(path)
  local packed = packing.pack(value, name, tensors, "save", not as_torch)
  if as_torch then return require "ltrain.files.torch_save" (path, packed, tensors) end
  local text = { format = FORMAT, tree = packed }
  return c.io.save_safetensors(path, tensors, packing.metadata(text, tensors))
end
