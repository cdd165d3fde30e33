--- stdlib/metrics/RelativeSquaredError.lua: the sum of squared errors divided by that of
-- squared deviations of the targets from their mean, or its root.
local Moments = require "ltrain.metrics.moment_metric"

local RelativeSquaredError = Moments:extend("RelativeSquaredError")

RelativeSquaredError.__arguments = "| num_outputs squared"

RelativeSquaredError.higher_is_better = false

RelativeSquaredError.options = {
  num_outputs = Moments.rows.num_outputs,
  squared = { type = "boolean", default = true, doc = "false: the root" },
}

--- RelativeSquaredError()
function RelativeSquaredError:init(options) Moments.init(self, options) end

--- Returns the mean over outputs; nan for fewer than two samples, which is reported once.
function RelativeSquaredError:compute()
  local nothing = self:too_few()
  if nothing then return nothing end
  local errors_squared, _, variance = self:squares()
  local each = errors_squared / variance
  return (self.squared and each or each:sqrt()):mean():item()
end

return RelativeSquaredError
