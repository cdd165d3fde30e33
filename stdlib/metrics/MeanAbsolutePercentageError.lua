--- stdlib/metrics/MeanAbsolutePercentageError.lua: the mean of absolute errors divided by
-- absolute targets.
local Pointwise = require "ltrain.metrics.elementwise_error"

local MeanAbsolutePercentageError = Pointwise:extend("MeanAbsolutePercentageError")

MeanAbsolutePercentageError.higher_is_better = false

--- MeanAbsolutePercentageError()
function MeanAbsolutePercentageError:init(options) Pointwise.init(self, options) end

--- Returns the error of each element.
function MeanAbsolutePercentageError:terms(x, y) -- luacheck: no self
  return (x - y):abs() / y:abs():clamp { min = 1.17e-6 }
end

return MeanAbsolutePercentageError
