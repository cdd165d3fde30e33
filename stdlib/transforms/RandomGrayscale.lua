-- stdlib/transforms/RandomGrayscale.lua: randomly converts an image to grayscale, with the same
-- number of channels.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"

local RandomGrayscale = Transform:extend("RandomGrayscale")

RandomGrayscale.__arguments = "| p"

local WHERE <const> = "transforms.RandomGrayscale"
local OPTIONS <const> = {
  p = { type = "number", default = 0.1, min = 0, max = 1, doc = "probability" },
}

--- transforms.RandomGrayscale{p = 0.2}: with probability 0.2
function RandomGrayscale:init(options)
  self.p = config.check(options, OPTIONS, WHERE).p
end

function RandomGrayscale:_steps()
  return { { "random_grayscale", self.p } }
end

return RandomGrayscale
