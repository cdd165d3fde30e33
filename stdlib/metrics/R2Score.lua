--- stdlib/metrics/R2Score.lua: the coefficient of determination: 1 - (sum of squared errors) /
-- (sum of squared deviations of the targets from their mean).
--
-- Only targets that are exactly constant count as constant: torchmetrics treats sums below 1e-4 as
-- 0.
local Moments = require "ltrain.metrics.moment_metric"

local R2Score = Moments:extend("R2Score")

R2Score.__arguments = "| adjusted multioutput"

R2Score.higher_is_better = true

R2Score.options = {
  num_outputs = Moments.rows.num_outputs, multioutput = Moments.rows.multioutput,
  adjusted = { type = "integer", default = 0, min = 0,
    doc = "number of independent regressors, for the adjusted score" },
}

--- R2Score{num_outputs = 3, multioutput = "raw_values"}
function R2Score:init(options) Moments.init(self, options) end

--- Returns the score; nan for fewer than two samples, which is reported once.
function R2Score:compute()
  local nothing = self:too_few()
  if nothing then return nothing end
  local errors_squared, _, variance = self:squares()
  local score = self:over_outputs(self.explained(errors_squared, variance))
  local n, k = self.count, self.adjusted
  if k == 0 or k >= n - 1 then return score end
  return 1 - (1 - score) * ((n - 1) / (n - k - 1))
end

return R2Score
