-- stdlib/transforms/RandomInvert.lua: randomly inverts the colours of an image.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomInvert = Transform:extend("RandomInvert")

RandomInvert.__arguments = "| p"

local WHERE <const> = "transforms.RandomInvert"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomInvert{}: with probability 0.5
function RandomInvert:init(options)
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomInvert:_steps()
  return { { "invert", self.p } }
end

return RandomInvert
