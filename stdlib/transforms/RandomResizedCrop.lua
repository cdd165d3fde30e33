-- stdlib/transforms/RandomResizedCrop.lua: crops a random area with a random aspect ratio, and
-- resizes it.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomResizedCrop = Transform:extend("RandomResizedCrop")

RandomResizedCrop.__arguments = "size | scale ratio interpolation antialias"

local WHERE <const> = "transforms.RandomResizedCrop"
local OPTIONS <const> = {
  scale = { type = "table", default = { 0.08, 1 }, doc = "minimum and maximum fraction of the "
    .. "area" },
  ratio = { type = "table", default = { 3 / 4, 4 / 3 }, doc = "minimum and maximum ratio of "
    .. "width to height" },
  interpolation = values.interpolation("bilinear", "bicubic"),
}

--- transforms.RandomResizedCrop(224): a square; or {height, width}
---@param size integer|table
function RandomResizedCrop:init(size, options)
  self.size = values.size(size, WHERE, "size")
  local o <const> = config.check(options, OPTIONS, WHERE)
  self.scale = values.range(o.scale, WHERE, "scale", { above = 0, max = 1 })
  self.ratio = values.range(o.ratio, WHERE, "ratio", { above = 0 })
  self.interpolation = o.interpolation
end

function RandomResizedCrop:_steps()
  return { { "random_resized_crop", self.size[1], self.size[2], self.scale[1], self.scale[2],
    self.ratio[1], self.ratio[2], values.filter(self.interpolation) } }
end

return RandomResizedCrop
