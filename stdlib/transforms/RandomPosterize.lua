-- stdlib/transforms/RandomPosterize.lua: randomly reduces the number of bits of each channel.

local RandomStep = require "ltrain.transforms.random_step"
local config = require "ltrain.core.config"

local RandomPosterize = RandomStep:extend("RandomPosterize")

RandomPosterize.__arguments = "bits | p"
RandomPosterize.step, RandomPosterize.argument = "posterize", "bits"

--- transforms.RandomPosterize(2): the number of bits to keep
---@param bits integer
function RandomPosterize:init(bits, options)
  self.bits = config.argument(bits, "integer", "transforms.RandomPosterize", "bits",
    { min = 0, max = 8 })
  RandomStep.init(self, options)
end

return RandomPosterize
