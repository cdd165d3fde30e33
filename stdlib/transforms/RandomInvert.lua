-- stdlib/transforms/RandomInvert.lua: randomly inverts the colours of an image.

local RandomStep = require "ltrain.transforms.random_step"

local RandomInvert = RandomStep:extend("RandomInvert")

RandomInvert.__arguments, RandomInvert.step = "| p", "invert"

--- transforms.RandomInvert{}: with probability 0.5
function RandomInvert:init(options) RandomStep.init(self, options) end

return RandomInvert
