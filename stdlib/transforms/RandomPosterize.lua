-- stdlib/transforms/RandomPosterize.lua: randomly reduces the number of bits of each channel.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomPosterize = Transform:extend("RandomPosterize")

RandomPosterize.__arguments = "bits | p"

local WHERE <const> = "transforms.RandomPosterize"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomPosterize(2): the number of bits to keep
---@param bits integer
function RandomPosterize:init(bits, options)
  self.bits = config.argument(bits, "integer", WHERE, "bits", { min = 0, max = 8 })
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomPosterize:_steps()
  return { { "posterize", self.p, self.bits } }
end

return RandomPosterize
