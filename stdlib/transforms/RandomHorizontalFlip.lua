-- stdlib/transforms/RandomHorizontalFlip.lua: left and right change places.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomHorizontalFlip = Transform:extend("RandomHorizontalFlip")

RandomHorizontalFlip.__arguments = "| p"

local WHERE <const> = "transforms.RandomHorizontalFlip"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomHorizontalFlip{}: in one of two images
function RandomHorizontalFlip:init(options)
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomHorizontalFlip:_steps()
  return { { "horizontal_flip", self.p } }
end

return RandomHorizontalFlip
