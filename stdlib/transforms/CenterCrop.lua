-- stdlib/transforms/CenterCrop.lua: crops the center of an image, padding it with zeros if it is
-- smaller.

local Transform = require "ltrain.transforms.Transform"
local values = require "ltrain.transforms.values"

local CenterCrop = Transform:extend("CenterCrop")

CenterCrop.__arguments = "size"

local WHERE <const> = "transforms.CenterCrop"

--- transforms.CenterCrop(224): a square; or {height, width}
---@param size integer|table
function CenterCrop:init(size)
  self.size = values.size(size, WHERE, "size")
end

function CenterCrop:_steps()
  return { { "center_crop", self.size[1], self.size[2] } }
end

return CenterCrop
