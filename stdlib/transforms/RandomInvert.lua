-- stdlib/transforms/RandomInvert.lua: light becomes dark.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomInvert = Transform:extend("RandomInvert")

RandomInvert.__arguments = "| p"

local WHERE <const> = "transforms.RandomInvert"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomInvert{}: in one of two images
function RandomInvert:init(options)
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomInvert:_steps()
  return { { "invert", self.p } }
end

return RandomInvert
