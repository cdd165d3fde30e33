-- stdlib/transforms/RandAugment.lua: RandAugment: applies a few random operations with a fixed
-- magnitude.

local Transform = require "ltrain.transforms.Transform"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local values = require "ltrain.transforms.values"

local RandAugment = Transform:extend("RandAugment")

RandAugment.__arguments = "| num_ops magnitude num_magnitude_bins interpolation fill"

local WHERE <const> = "transforms.RandAugment"
local OPTIONS <const> = {
  num_ops = { type = "integer", default = 2, min = 0, max = 100 },
  magnitude = { type = "integer", default = 9, min = 0,
    doc = "magnitude, below num_magnitude_bins" },
  num_magnitude_bins = { type = "integer", default = 31, min = 2 },
  interpolation = values.interpolation("nearest"),
  fill = values.fill,
}

--- transforms.RandAugment{}: for u8 images with 1 or 3 channels
function RandAugment:init(options)
  local o <const> = config.check(options, OPTIONS, WHERE)
  if o.magnitude >= o.num_magnitude_bins then
    errors.blame("%s: magnitude must be below num_magnitude_bins: got %d and %d", WHERE,
      o.magnitude, o.num_magnitude_bins)
  end
  self.num_ops, self.magnitude, self.num_magnitude_bins = o.num_ops, o.magnitude,
    o.num_magnitude_bins
  self.interpolation, self.fill = o.interpolation, values.channels(o.fill, WHERE, "fill")
end

function RandAugment:_steps()
  return { { "rand_augment", self.num_ops, self.magnitude, self.num_magnitude_bins,
    values.filter(self.interpolation), fill = self.fill } }
end

return RandAugment
