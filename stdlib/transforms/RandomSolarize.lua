-- stdlib/transforms/RandomSolarize.lua: randomly inverts values above a threshold.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomSolarize = Transform:extend("RandomSolarize")

RandomSolarize.__arguments = "threshold | p"

local WHERE <const> = "transforms.RandomSolarize"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomSolarize(128): for u8 images; for f32 a threshold in 0..1
---@param threshold number
function RandomSolarize:init(threshold, options)
  self.threshold = config.argument(threshold, "number", WHERE, "threshold", { min = 0, max = 255 })
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomSolarize:_steps()
  return { { "solarize", self.p, self.threshold } }
end

return RandomSolarize
