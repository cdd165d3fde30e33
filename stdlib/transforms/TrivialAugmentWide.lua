-- stdlib/transforms/TrivialAugmentWide.lua: TrivialAugment: applies one random operation with a
-- random magnitude.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local values = require "ltrain.transforms.values"

local TrivialAugmentWide = Transform:extend("TrivialAugmentWide")

TrivialAugmentWide.__arguments = "| num_magnitude_bins interpolation fill"

local WHERE <const> = "transforms.TrivialAugmentWide"
local OPTIONS <const> = {
  num_magnitude_bins = { type = "integer", default = 31, min = 2 },
  interpolation = values.interpolation("nearest"),
  fill = values.fill,
}

--- transforms.TrivialAugmentWide{}: for u8 images with 1 or 3 channels
function TrivialAugmentWide:init(options)
  local o <const> = config.check(options, OPTIONS, WHERE)
  self.num_magnitude_bins, self.interpolation = o.num_magnitude_bins, o.interpolation
  self.fill = values.channels(o.fill, WHERE, "fill")
end

function TrivialAugmentWide:_steps()
  return { { "trivial_augment", self.num_magnitude_bins, values.filter(self.interpolation),
    fill = self.fill } }
end

return TrivialAugmentWide
