-- stdlib/transforms/RandomRotation.lua: rotates an image by a random angle.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomRotation = Transform:extend("RandomRotation")

RandomRotation.__arguments = "degrees | interpolation expand center fill"

local WHERE <const> = "transforms.RandomRotation"
local OPTIONS <const> = {
  interpolation = values.interpolation("nearest"),
  expand = { type = "boolean", default = false, doc = "enlarge the result to contain the whole "
    .. "image" },
  center = { type = "table", doc = "{x, y}; by default the center" },
  fill = values.fill,
}

--- transforms.RandomRotation(10): degrees in both directions; or {min, max}, anticlockwise
---@param degrees number|table
function RandomRotation:init(degrees, options)
  self.degrees = values.around_zero(degrees, WHERE, "degrees")
  local o <const> = config.check(options, OPTIONS, WHERE)
  self.center = o.center and values.list(o.center, 2, WHERE, "center")
  self.fill = values.channels(o.fill, WHERE, "fill")
  self.interpolation, self.expand = o.interpolation, o.expand
end

function RandomRotation:_steps()
  local center <const> = self.center
  return { { "rotation", self.degrees[1], self.degrees[2], values.filter(self.interpolation),
    self.expand, center ~= nil, center and center[1] or 0, center and center[2] or 0,
    fill = self.fill } }
end

return RandomRotation
