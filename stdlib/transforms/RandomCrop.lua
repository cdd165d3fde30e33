-- stdlib/transforms/RandomCrop.lua: crops an image at a random position.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomCrop = Transform:extend("RandomCrop")

RandomCrop.__arguments = "size | padding pad_if_needed fill padding_mode"

local WHERE <const> = "transforms.RandomCrop"
local OPTIONS <const> = {
  padding = { type = "number|table",
    doc = "padding before cropping: all sides, {x, y}, or {left, top, right, bottom}" },
  pad_if_needed = { type = "boolean", default = false,
    doc = "pad the image if it is smaller" },
  fill = values.fill,
  padding_mode = values.padding_mode,
}

--- transforms.RandomCrop(32, {padding = 4}): a square; or {height, width}
---@param size integer|table
function RandomCrop:init(size, options)
  self.size = values.size(size, WHERE, "size")
  local o <const> = config.check(options, OPTIONS, WHERE)
  self.padding = values.sides(o.padding or 0, WHERE, "padding")
  self.fill = values.channels(o.fill, WHERE, "fill")
  self.pad_if_needed, self.padding_mode = o.pad_if_needed, o.padding_mode
end

function RandomCrop:_steps()
  local size <const>, sides <const> = self.size, self.padding
  return { { "random_crop", size[1], size[2], sides[1], sides[2], sides[3], sides[4],
    self.pad_if_needed, values.padding(self.padding_mode), fill = self.fill } }
end

return RandomCrop
