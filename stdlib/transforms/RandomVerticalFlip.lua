-- stdlib/transforms/RandomVerticalFlip.lua: randomly flips an image vertically.

local RandomStep = require "ltrain.transforms.random_step"

local RandomVerticalFlip = RandomStep:extend("RandomVerticalFlip")

RandomVerticalFlip.__arguments, RandomVerticalFlip.step = "| p", "vertical_flip"

--- transforms.RandomVerticalFlip{}: with probability 0.5
function RandomVerticalFlip:init(options) RandomStep.init(self, options) end

return RandomVerticalFlip
