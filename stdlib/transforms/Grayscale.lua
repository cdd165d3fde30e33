-- stdlib/transforms/Grayscale.lua: converts an image to grayscale.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"

local Grayscale = Transform:extend("Grayscale")

Grayscale.__arguments = "| num_output_channels"

local WHERE <const> = "transforms.Grayscale"
local OPTIONS <const> = {
  num_output_channels = { type = "integer", default = 1, choices = { 1, 3 } },
}

--- transforms.Grayscale{}: to one channel, from three
function Grayscale:init(options)
  self.num_output_channels = config.check(options, OPTIONS, WHERE).num_output_channels
end

function Grayscale:_steps()
  return { { "grayscale", self.num_output_channels } }
end

return Grayscale
