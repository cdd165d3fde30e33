-- stdlib/transforms/RandomEqualize.lua: randomly equalizes the histogram of each channel, for u8
-- images.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomEqualize = Transform:extend("RandomEqualize")

RandomEqualize.__arguments = "| p"

local WHERE <const> = "transforms.RandomEqualize"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomEqualize{}: with probability 0.5
function RandomEqualize:init(options)
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomEqualize:_steps()
  return { { "equalize", self.p } }
end

return RandomEqualize
