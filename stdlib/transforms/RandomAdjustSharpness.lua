-- stdlib/transforms/RandomAdjustSharpness.lua: randomly adjusts the sharpness of an image.

local RandomStep = require "ltrain.transforms.random_step"
local config = require "ltrain.core.config"

local RandomAdjustSharpness = RandomStep:extend("RandomAdjustSharpness")

RandomAdjustSharpness.__arguments = "sharpness_factor | p"
RandomAdjustSharpness.step, RandomAdjustSharpness.argument = "sharpness", "sharpness_factor"

--- transforms.RandomAdjustSharpness(2): twice as sharp; 0 is blurred, 1 unchanged
---@param sharpness_factor number
function RandomAdjustSharpness:init(sharpness_factor, options)
  self.sharpness_factor = config.argument(sharpness_factor, "number",
    "transforms.RandomAdjustSharpness", "sharpness_factor", { min = 0 })
  RandomStep.init(self, options)
end

return RandomAdjustSharpness
