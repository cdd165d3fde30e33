-- stdlib/transforms/RandomAdjustSharpness.lua: randomly adjusts the sharpness of an image.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomAdjustSharpness = Transform:extend("RandomAdjustSharpness")

RandomAdjustSharpness.__arguments = "sharpness_factor | p"

local WHERE <const> = "transforms.RandomAdjustSharpness"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomAdjustSharpness(2): twice as sharp; 0 is blurred, 1 unchanged
---@param sharpness_factor number
function RandomAdjustSharpness:init(sharpness_factor, options)
  self.sharpness_factor = config.argument(sharpness_factor, "number", WHERE, "sharpness_factor",
    { min = 0 })
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomAdjustSharpness:_steps()
  return { { "sharpness", self.p, self.sharpness_factor } }
end

return RandomAdjustSharpness
