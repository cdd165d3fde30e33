-- stdlib/transforms/RandomVerticalFlip.lua: randomly flips an image vertically.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomVerticalFlip = Transform:extend("RandomVerticalFlip")

RandomVerticalFlip.__arguments = "| p"

local WHERE <const> = "transforms.RandomVerticalFlip"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomVerticalFlip{}: with probability 0.5
function RandomVerticalFlip:init(options)
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomVerticalFlip:_steps()
  return { { "vertical_flip", self.p } }
end

return RandomVerticalFlip
