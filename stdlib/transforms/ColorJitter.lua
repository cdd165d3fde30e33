-- stdlib/transforms/ColorJitter.lua: randomly changes brightness, contrast, saturation and hue, in
-- random order.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local ColorJitter = Transform:extend("ColorJitter")

ColorJitter.__arguments = "| brightness contrast saturation hue"

local WHERE <const> = "transforms.ColorJitter"
local OPTIONS <const> = {
  brightness = { type = "number|table", doc = "a factor in 1 - x .. 1 + x, or {min, max}" },
  contrast = { type = "number|table", doc = "a factor in 1 - x .. 1 + x, or {min, max}" },
  saturation = { type = "number|table", doc = "a factor in 1 - x .. 1 + x, or {min, max}" },
  hue = { type = "number|table", doc = "a shift in -x .. x, at most 0.5, or {min, max}" },
}

local function factors(value, name)
  if type(value) == "table" then return values.range(value, WHERE, name, { min = 0 }) end
  config.value(value, { type = "number", min = 0 }, WHERE, name)
  return { math.max(0, 1 - value), 1 + value }
end

--- transforms.ColorJitter{brightness = 0.4, hue = 0.1}: others are not changed
function ColorJitter:init(options)
  local o <const> = config.check(options, OPTIONS, WHERE)
  for _, name in ipairs { "brightness", "contrast", "saturation" } do
    self[name] = o[name] and factors(o[name], name)
  end
  local hue <const> = type(o.hue) == "number" and { -o.hue, o.hue } or o.hue
  self.hue = hue and values.range(hue, WHERE, "hue", { min = -0.5, max = 0.5 })
end

function ColorJitter:_steps()
  local step, wanted = { "color_jitter" }, 0
  for k, name in ipairs { "brightness", "contrast", "saturation", "hue" } do
    local range <const> = self[name] or { 1, 1 }
    step[2 * k], step[2 * k + 1] = range[1], range[2]
    wanted = wanted | (self[name] and 1 << (k - 1) or 0)
  end
  step[10] = wanted
  return { step }
end

return ColorJitter
