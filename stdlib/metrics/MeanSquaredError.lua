--- stdlib/metrics/MeanSquaredError.lua: the mean of squared errors, or its root.
local Pointwise = require "ltrain.metrics.elementwise_error"

local MeanSquaredError = Pointwise:extend("MeanSquaredError")

MeanSquaredError.__arguments = "| squared num_outputs"

MeanSquaredError.higher_is_better = false

MeanSquaredError.options = {
  num_outputs = Pointwise.rows.num_outputs,
  squared = { type = "boolean", default = true, doc = "false: the root (RMSE)" },
}

--- MeanSquaredError{squared = false}
function MeanSquaredError:init(options) Pointwise.init(self, options) end

--- Returns the error of each element.
function MeanSquaredError:terms(x, y) -- luacheck: no self
  return (x - y):square()
end

--- Returns the mean, or its root.
function MeanSquaredError:finish(total, weight)
  local mean = total / weight
  return self.squared and mean or mean:sqrt()
end

return MeanSquaredError
