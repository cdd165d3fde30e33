-- stdlib/transforms/ToDtype.lua: another type of values.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"

local ToDtype = Transform:extend("ToDtype")

ToDtype.__arguments = "dtype | scale"

local WHERE <const> = "transforms.ToDtype"
local OPTIONS <const> = {
  scale = { type = "boolean", default = false, doc = "0..255 becomes 0..1, or the other way" },
}

--- transforms.ToDtype("f32", {scale = true}): the type, "f32" or "u8"
---@param dtype string
function ToDtype:init(dtype, options)
  self.dtype = config.value(dtype, { type = "string", choices = { "f32", "u8" } }, WHERE, "dtype")
  self.scale = config.check(options, OPTIONS, WHERE).scale
end

function ToDtype:_steps()
  return { { self.dtype == "f32" and "to_floats" or "to_bytes", self.scale } }
end

return ToDtype
