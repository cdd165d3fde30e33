-- stdlib/transforms/RandomSolarize.lua: randomly inverts values above a threshold.

local RandomStep = require "ltrain.transforms.random_step"
local config = require "ltrain.core.config"

local RandomSolarize = RandomStep:extend("RandomSolarize")

RandomSolarize.__arguments = "threshold | p"
RandomSolarize.step, RandomSolarize.argument = "solarize", "threshold"

--- transforms.RandomSolarize(128): for u8 images; for f32 a threshold in 0..1
---@param threshold number
function RandomSolarize:init(threshold, options)
  self.threshold = config.argument(threshold, "number", "transforms.RandomSolarize", "threshold",
    { min = 0, max = 255 })
  RandomStep.init(self, options)
end

return RandomSolarize
