-- stdlib/transforms/RandomAffine.lua: applies a random affine transform: rotation, translation,
-- scale and shear.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomAffine = Transform:extend("RandomAffine")

RandomAffine.__arguments = "degrees | translate scale shear interpolation fill center"

local WHERE <const> = "transforms.RandomAffine"
local OPTIONS <const> = {
  translate = { type = "table", doc = "{x, y}: maximum translation, as fractions of width and "
    .. "height" },
  scale = { type = "table", doc = "{least, most}" },
  shear = { type = "number|table",
    doc = "degrees along x, {min, max}, or four numbers, also along y" },
  interpolation = values.interpolation("nearest"),
  fill = values.fill,
  center = { type = "table", doc = "{x, y}; by default the center" },
}

-- Along x, then along y.
local function shear_of(shear)
  if type(shear) == "table" and #shear == 4 then
    return values.list(shear, 4, WHERE, "shear")
  end
  local range <const> = values.around_zero(shear, WHERE, "shear")
  return { range[1], range[2], 0, 0 }
end

--- transforms.RandomAffine(10, {translate = {0.1, 0.1}}): degrees in both directions; or {min, max}
---@param degrees number|table
function RandomAffine:init(degrees, options)
  self.degrees = values.around_zero(degrees, WHERE, "degrees")
  local o <const> = config.check(options, OPTIONS, WHERE)
  self.translate = values.list(o.translate or { 0, 0 }, 2, WHERE, "translate", { min = 0, max = 1 })
  self.scale = values.range(o.scale or { 1, 1 }, WHERE, "scale", { above = 0 })
  self.shear = shear_of(o.shear or 0)
  self.center = o.center and values.list(o.center, 2, WHERE, "center")
  self.fill, self.interpolation = values.channels(o.fill, WHERE, "fill"), o.interpolation
end

function RandomAffine:_steps()
  local center <const>, shear <const> = self.center, self.shear
  return { { "affine", self.degrees[1], self.degrees[2], self.translate[1], self.translate[2],
    self.scale[1], self.scale[2], shear[1], shear[2], shear[3], shear[4],
    values.filter(self.interpolation), center ~= nil, center and center[1] or 0,
    center and center[2] or 0, fill = self.fill } }
end

return RandomAffine
