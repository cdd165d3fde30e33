-- stdlib/transforms/RandomAutocontrast.lua: randomly maximizes the contrast of each channel.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomAutocontrast = Transform:extend("RandomAutocontrast")

RandomAutocontrast.__arguments = "| p"

local WHERE <const> = "transforms.RandomAutocontrast"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomAutocontrast{}: with probability 0.5
function RandomAutocontrast:init(options)
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomAutocontrast:_steps()
  return { { "autocontrast", self.p } }
end

return RandomAutocontrast
