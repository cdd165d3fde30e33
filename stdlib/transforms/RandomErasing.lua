-- stdlib/transforms/RandomErasing.lua: randomly erases a rectangle of an image.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local values = require "ltrain.transforms.values"

local RandomErasing = Transform:extend("RandomErasing")

RandomErasing.__arguments = "| p scale ratio value"

local WHERE <const> = "transforms.RandomErasing"
local OPTIONS <const> = {
  p = values.p,
  scale = { type = "table", default = { 0.02, 0.33 }, doc = "minimum and maximum fraction of the "
    .. "area" },
  ratio = { type = "table", default = { 0.3, 3.3 }, doc = "minimum and maximum ratio of height "
    .. "to width" },
  value = { type = "number|table|string", default = 0,
    doc = '"random", a value, or a list with one per channel' },
}

--- transforms.RandomErasing{}: with probability 0.5; masks and boxes are not changed
function RandomErasing:init(options)
  local o <const> = config.check(options, OPTIONS, WHERE)
  if type(o.value) == "string" and o.value ~= "random" then
    errors.blame("%s: value must be 'random', or numbers: got '%s'", WHERE, o.value)
  end
  self.p, self.value = o.p, o.value
  self.scale = values.range(o.scale, WHERE, "scale", { min = 0, max = 1 })
  self.ratio = values.range(o.ratio, WHERE, "ratio", { above = 0 })
  self.fill = o.value ~= "random" and values.channels(o.value, WHERE, "value") or nil
end

function RandomErasing:_steps()
  return { { "erasing", self.p, self.scale[1], self.scale[2], self.ratio[1], self.ratio[2],
    self.value == "random", fill = self.fill } }
end

return RandomErasing
