--- stdlib/metrics/MeanAbsoluteError.lua: the mean of absolute errors.
local Pointwise = require "ltrain.metrics.elementwise_error"

local MeanAbsoluteError = Pointwise:extend("MeanAbsoluteError")

MeanAbsoluteError.__arguments = "| num_outputs"

MeanAbsoluteError.higher_is_better = false

MeanAbsoluteError.options = {
  num_outputs = Pointwise.rows.num_outputs,
}

--- MeanAbsoluteError()
function MeanAbsoluteError:init(options) Pointwise.init(self, options) end

--- Returns the error of each element.
function MeanAbsoluteError:terms(x, y) -- luacheck: no self
  return (x - y):abs()
end

return MeanAbsoluteError
