-- stdlib/transforms/RandomGrayscale.lua: randomly converts an image to grayscale, with the same
-- number of channels.

local RandomStep = require "ltrain.transforms.random_step"

local RandomGrayscale = RandomStep:extend("RandomGrayscale")

RandomGrayscale.__arguments, RandomGrayscale.step = "| p", "random_grayscale"

RandomGrayscale.options = {
  p = { type = "number", default = 0.1, min = 0, max = 1, doc = "probability" },
}

--- transforms.RandomGrayscale{p = 0.2}: with probability 0.2
function RandomGrayscale:init(options) RandomStep.init(self, options) end

return RandomGrayscale
