--- stdlib/metrics/LogCoshError.lua: the mean of log(cosh(x - y)).
local Pointwise = require "ltrain.metrics.elementwise_error"

local LogCoshError = Pointwise:extend("LogCoshError")

LogCoshError.__arguments = "| num_outputs"

LogCoshError.higher_is_better = false

LogCoshError.options = {
  num_outputs = Pointwise.rows.num_outputs,
}

--- LogCoshError()
function LogCoshError:init(options) Pointwise.init(self, options) end

--- Returns the error of each element, computed without overflow.
function LogCoshError:terms(x, y) -- luacheck: no self
  local distance = (x - y):abs()
  return distance + (distance * -2):exp():log1p() - math.log(2)
end

return LogCoshError
