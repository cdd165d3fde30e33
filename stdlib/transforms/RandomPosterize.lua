-- stdlib/transforms/RandomPosterize.lua: values keep their highest bits.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomPosterize = Transform:extend("RandomPosterize")

RandomPosterize.__arguments = "bits | p"

local WHERE <const> = "transforms.RandomPosterize"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomPosterize(2): the count of bits
---@param bits integer
function RandomPosterize:init(bits, options)
  self.bits = config.argument(bits, "integer", WHERE, "bits", { min = 0, max = 8 })
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomPosterize:_steps()
  return { { "posterize", self.p, self.bits } }
end

return RandomPosterize
