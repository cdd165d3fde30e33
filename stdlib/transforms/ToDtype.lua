-- stdlib/transforms/ToDtype.lua: converts an image to another dtype.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"

local ToDtype = Transform:extend("ToDtype")

ToDtype.__arguments = "dtype | scale"

local WHERE <const> = "transforms.ToDtype"
local OPTIONS <const> = {
  scale = { type = "boolean", default = false, doc = "scale 0..255 to 0..1, or the reverse" },
}

--- transforms.ToDtype("f32", {scale = true}): the dtype, "f32" or "u8"
---@param dtype string
function ToDtype:init(dtype, options)
  self.dtype = config.value(dtype, { type = "string", choices = { "f32", "u8" } }, WHERE, "dtype")
  self.scale = config.check(options, OPTIONS, WHERE).scale
end

function ToDtype:_steps()
  return { { self.dtype == "f32" and "to_floats" or "to_bytes", self.scale } }
end

return ToDtype
