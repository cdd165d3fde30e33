-- stdlib/transforms/RandomAutocontrast.lua: each channel is stretched over all values.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomAutocontrast = Transform:extend("RandomAutocontrast")

RandomAutocontrast.__arguments = "| p"

local WHERE <const> = "transforms.RandomAutocontrast"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomAutocontrast{}: in one of two images
function RandomAutocontrast:init(options)
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomAutocontrast:_steps()
  return { { "autocontrast", self.p } }
end

return RandomAutocontrast
