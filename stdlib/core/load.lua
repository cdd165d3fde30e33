-- stdlib/core/load.lua: lt.load, which reads what lt.save wrote, or any safetensors file.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local packing = require "ltrain.trainer.saving.packing"

local FORMAT <const> = 1
local KEY <const> = "ltrain"

local function wrong_format(path, text)
  if type(text) ~= "table" or math.type(text.format) ~= "integer" then
    return ("load: %s: the text under '%s' is not ltrain's"):format(path, KEY)
  elseif text.format > FORMAT then
    return ("load: %s: format %d; this ltrain reads up to %d"):format(path, text.format, FORMAT)
  end
end

--- The value that lt.save wrote; of other safetensors files the tensors by name and, as a second
--- result, the metadata. Nil and the reason when the file cannot be read.
return function(path)
  if type(path) ~= "string" then
    errors.blame("load: the path must be a string: got %s", errors.show(path))
  end
  local tensors, metadata = c.io.load_safetensors(path)
  if not tensors then return nil, metadata end
  if not metadata[KEY] then return tensors, metadata end
  local text, message = c.io.json_decode(metadata[KEY])
  if text == nil then return nil, ("load: %s: %s"):format(path, message) end
  local reason = wrong_format(path, text)
  if reason then return nil, reason end
  local damage = packing.damage(text.crc, tensors)
  if damage then return nil, ("load: %s: %s"):format(path, damage) end
  if text.tree == nil then return tensors, metadata end
  return packing.unpack(text.tree, tensors)
end
