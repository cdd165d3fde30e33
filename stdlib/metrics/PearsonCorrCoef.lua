--- stdlib/metrics/PearsonCorrCoef.lua: Pearson's correlation of predictions and targets.
local Moments = require "ltrain.metrics.moment_metric"

local PearsonCorrCoef = Moments:extend("PearsonCorrCoef")

PearsonCorrCoef.__arguments = "| num_outputs"

--- PearsonCorrCoef()
function PearsonCorrCoef:init(options) Moments.init(self, options) end

--- Returns the coefficient, with num_outputs = K a tensor [K]; nan for fewer than two samples,
--- which is reported once, and for constant ones.
function PearsonCorrCoef:compute()
  local nothing = self:too_few()
  if nothing then return nothing end
  local each = self.xy / (self.xx:sqrt() * self.yy:sqrt())
  return self:number_or_all(each:clamp { min = -1, max = 1 })
end

return PearsonCorrCoef
