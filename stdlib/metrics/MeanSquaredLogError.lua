--- stdlib/metrics/MeanSquaredLogError.lua: the mean of (log(1 + x) - log(1 + y))^2.
local Pointwise = require "ltrain.metrics.elementwise_error"

local MeanSquaredLogError = Pointwise:extend("MeanSquaredLogError")

MeanSquaredLogError.higher_is_better = false

--- MeanSquaredLogError()
function MeanSquaredLogError:init(options) Pointwise.init(self, options) end

--- Returns the error of each element.
function MeanSquaredLogError:terms(x, y) -- luacheck: no self
  return (x:log1p() - y:log1p()):square()
end

return MeanSquaredLogError
