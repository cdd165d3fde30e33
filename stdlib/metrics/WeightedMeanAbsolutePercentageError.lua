--- stdlib/metrics/WeightedMeanAbsolutePercentageError.lua: the sum of absolute errors divided
-- by that of absolute targets.
local Pointwise = require "ltrain.metrics.elementwise_error"

local WeightedMeanAbsolutePercentageError = Pointwise:extend("WeightedMeanAbsolutePercentageError")

WeightedMeanAbsolutePercentageError.higher_is_better = false

--- WeightedMeanAbsolutePercentageError()
function WeightedMeanAbsolutePercentageError:init(options) Pointwise.init(self, options) end

--- Returns the error of each element.
function WeightedMeanAbsolutePercentageError:terms(x, y) -- luacheck: no self
  return (x - y):abs(), y:abs()
end

return WeightedMeanAbsolutePercentageError
