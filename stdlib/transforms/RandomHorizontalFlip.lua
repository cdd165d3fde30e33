-- stdlib/transforms/RandomHorizontalFlip.lua: randomly flips an image horizontally.

local RandomStep = require "ltrain.transforms.random_step"

local RandomHorizontalFlip = RandomStep:extend("RandomHorizontalFlip")

RandomHorizontalFlip.__arguments, RandomHorizontalFlip.step = "| p", "horizontal_flip"

--- transforms.RandomHorizontalFlip{}: with probability 0.5
function RandomHorizontalFlip:init(options) RandomStep.init(self, options) end

return RandomHorizontalFlip
