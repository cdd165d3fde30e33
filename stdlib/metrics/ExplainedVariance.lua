--- stdlib/metrics/ExplainedVariance.lua: explained variance: 1 - var(errors) / var(targets).
local Moments = require "ltrain.metrics.moment_metric"

local ExplainedVariance = Moments:extend("ExplainedVariance")

ExplainedVariance.__arguments = "| multioutput"

ExplainedVariance.higher_is_better = true

ExplainedVariance.options = {
  num_outputs = Moments.rows.num_outputs, multioutput = Moments.rows.multioutput,
}

--- ExplainedVariance()
function ExplainedVariance:init(options) Moments.init(self, options) end

--- Returns the value; nan for fewer than two samples, which is reported once.
function ExplainedVariance:compute()
  local nothing = self:too_few()
  if nothing then return nothing end
  local _, spread, variance = self:squares()
  return self:over_outputs(self.explained(spread, variance))
end

return ExplainedVariance
