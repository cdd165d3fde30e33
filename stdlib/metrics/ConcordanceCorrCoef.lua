--- stdlib/metrics/ConcordanceCorrCoef.lua: the concordance correlation coefficient:
-- 2 cov(x, y) / (var(x) + var(y) + (mean(x) - mean(y))^2).
--
-- L. Lin, A Concordance Correlation Coefficient to Evaluate Reproducibility, 1989.
--
-- Variances divide by N - 1, as in torchmetrics.
local Moments = require "ltrain.metrics.moment_metric"

local ConcordanceCorrCoef = Moments:extend("ConcordanceCorrCoef")

ConcordanceCorrCoef.__arguments = "| num_outputs"

ConcordanceCorrCoef.higher_is_better = true

--- ConcordanceCorrCoef()
function ConcordanceCorrCoef:init(options) Moments.init(self, options) end

--- Returns the coefficient, with num_outputs = K a tensor [K]; nan for fewer than two samples,
--- which is reported once.
function ConcordanceCorrCoef:compute()
  local nothing = self:too_few()
  if nothing then return nothing end
  local bias = self.mean_x - self.mean_y
  return self:number_or_all(self.xy * 2 / (self.xx + self.yy + bias * bias * (self.count - 1)))
end

return ConcordanceCorrCoef
