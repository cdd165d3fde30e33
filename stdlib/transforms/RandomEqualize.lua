-- stdlib/transforms/RandomEqualize.lua: randomly equalizes the histogram of each channel, for u8
-- images.

local RandomStep = require "ltrain.transforms.random_step"

local RandomEqualize = RandomStep:extend("RandomEqualize")

RandomEqualize.__arguments, RandomEqualize.step = "| p", "equalize"

--- transforms.RandomEqualize{}: with probability 0.5
function RandomEqualize:init(options) RandomStep.init(self, options) end

return RandomEqualize
