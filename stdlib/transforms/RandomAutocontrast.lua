-- stdlib/transforms/RandomAutocontrast.lua: randomly maximizes the contrast of each channel.

local RandomStep = require "ltrain.transforms.random_step"

local RandomAutocontrast = RandomStep:extend("RandomAutocontrast")

RandomAutocontrast.__arguments, RandomAutocontrast.step = "| p", "autocontrast"

--- transforms.RandomAutocontrast{}: with probability 0.5
function RandomAutocontrast:init(options) RandomStep.init(self, options) end

return RandomAutocontrast
