-- stdlib/transforms/RandomEqualize.lua: all values of a channel become about as frequent; of u8.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local RandomEqualize = Transform:extend("RandomEqualize")

RandomEqualize.__arguments = "| p"

local WHERE <const> = "transforms.RandomEqualize"
local OPTIONS <const> = {
  p = values.p,
}

--- transforms.RandomEqualize{}: in one of two images
function RandomEqualize:init(options)
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomEqualize:_steps()
  return { { "equalize", self.p } }
end

return RandomEqualize
