--- stdlib/metrics/PeakSignalNoiseRatio.lua: the peak signal-to-noise ratio (PSNR) in decibels, over
-- all elements.
local Pointwise = require "ltrain.metrics.elementwise_error"
local data_range = require "ltrain.metrics.data_range"

local PeakSignalNoiseRatio = Pointwise:extend("PeakSignalNoiseRatio")

PeakSignalNoiseRatio.__arguments = "| data_range base"

PeakSignalNoiseRatio.higher_is_better = true

PeakSignalNoiseRatio.options = {
  data_range = data_range.option,
  base = { type = "number", default = 10, above = 1, doc = "base of the logarithm" },
}

--- PeakSignalNoiseRatio{data_range = 1.0}
function PeakSignalNoiseRatio:init(options) Pointwise.init(self, options) end

--- Returns the error of each element.
function PeakSignalNoiseRatio:terms(x, y)
  return (data_range.clamp(self, x) - data_range.clamp(self, y)):square()
end

--- Returns the ratio.
function PeakSignalNoiseRatio:finish(total, weight)
  local peak = data_range.width(self)
  return ((weight * (peak * peak)) / total):log() * (10 / math.log(self.base))
end

return PeakSignalNoiseRatio
