--- stdlib/metrics/SymmetricMeanAbsolutePercentageError.lua: the mean of 2 |x - y| /
-- (|x| + |y|).
local Pointwise = require "ltrain.metrics.elementwise_error"

local SymmetricMeanAbsolutePercentageError =
  Pointwise:extend("SymmetricMeanAbsolutePercentageError")

SymmetricMeanAbsolutePercentageError.higher_is_better = false

--- SymmetricMeanAbsolutePercentageError()
function SymmetricMeanAbsolutePercentageError:init(options) Pointwise.init(self, options) end

--- Returns the error of each element.
function SymmetricMeanAbsolutePercentageError:terms(x, y) -- luacheck: no self
  return (x - y):abs() * 2 / (x:abs() + y:abs()):clamp { min = 1.17e-6 }
end

return SymmetricMeanAbsolutePercentageError
