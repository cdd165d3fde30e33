-- stdlib/transforms/Resize.lua: resizes an image with antialiasing, like PIL, and torchvision with
-- `antialias = true`.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local values = require "ltrain.transforms.values"

local Resize = Transform:extend("Resize")

Resize.__arguments = "size | interpolation max_size antialias"

local WHERE <const> = "transforms.Resize"
local OPTIONS <const> = {
  interpolation = values.interpolation("bilinear", "bicubic"),
  max_size = { type = "integer", min = 1, max = 65535, doc = "maximum length of the longer side" },
}

--- transforms.Resize(256): the shorter side; or {height, width}
---@param size integer|table
function Resize:init(size, options)
  self.size = config.value(size, { type = "pair", min = 1, max = 65535 }, WHERE, "size")
  local o <const> = config.check(options, OPTIONS, WHERE)
  if o.max_size and (type(self.size) == "table" or o.max_size <= self.size) then
    errors.blame("%s: max_size is for one side, and above it: got %s", WHERE,
      errors.show(o.max_size))
  end
  self.interpolation, self.max_size = o.interpolation, o.max_size
end

function Resize:_steps()
  local height, width = self.size, 0
  if type(height) == "table" then height, width = height[1], height[2] end
  return { { "resize", height, width, values.filter(self.interpolation), self.max_size or 0 } }
end

return Resize
