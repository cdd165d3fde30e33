-- stdlib/transforms/RandomHorizontalFlip.lua: randomly flips an image horizontally.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomHorizontalFlip = Transform:extend("RandomHorizontalFlip")

RandomHorizontalFlip.__arguments = "| p"

local WHERE <const> = "transforms.RandomHorizontalFlip"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomHorizontalFlip{}: with probability 0.5
function RandomHorizontalFlip:init(options)
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomHorizontalFlip:_steps()
  return { { "horizontal_flip", self.p } }
end

return RandomHorizontalFlip
