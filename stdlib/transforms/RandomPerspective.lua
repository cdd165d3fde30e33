-- stdlib/transforms/RandomPerspective.lua: applies a random perspective transform.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomPerspective = Transform:extend("RandomPerspective")

RandomPerspective.__arguments = "| distortion_scale p interpolation fill"

local WHERE <const> = "transforms.RandomPerspective"
local OPTIONS <const> = {
  distortion_scale = { type = "number", default = 0.5, min = 0, max = 1,
    doc = "how far corners are moved" },
  p = values.p,
  interpolation = values.interpolation("bilinear"),
  fill = values.fill,
}

--- transforms.RandomPerspective{}: with probability 0.5
function RandomPerspective:init(options)
  local o <const> = config.check(options, OPTIONS, WHERE)
  self.distortion_scale, self.p, self.interpolation = o.distortion_scale, o.p, o.interpolation
  self.fill = values.channels(o.fill, WHERE, "fill")
end

function RandomPerspective:_steps()
  return { { "perspective", self.distortion_scale, self.p, values.filter(self.interpolation),
    fill = self.fill } }
end

return RandomPerspective
