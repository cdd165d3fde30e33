--- stdlib/metrics/FBetaScore.lua: the F-beta score: the weighted harmonic mean of precision and
-- recall, (1 + beta^2) P R / (beta^2 P + R).
local StatScores = require "ltrain.metrics.StatScores"

local FBetaScore = StatScores:extend("FBetaScore")

FBetaScore.__arguments = "| task beta threshold num_classes num_labels average "
  .. "(multidim_average) top_k ignore_index (validate_args) zero_division"

FBetaScore.higher_is_better = true

FBetaScore.options = StatScores.options_with {
  beta = { type = "number", required = true, above = 0, doc = "the weight of recall" },
  zero_division = { type = "number", default = 0, choices = { 0, 1 },
    doc = "the value of a class where the denominator is 0" },
}

--- FBetaScore{beta = 2, num_classes = 10, average = "macro"}
function FBetaScore:init(options) StatScores.init(self, options) end

--- Returns the numerator and the denominator of the score.
function FBetaScore:ratio(tp, fp, _, fn)
  local square = (self.beta or 1) ^ 2
  if square == 1 then return tp * 2, tp * 2 + fp + fn end
  local found = tp:to "f64" * (1 + square)
  return found, found + fn:to "f64" * square + fp:to "f64"
end

--- Returns the score. A class that neither occurs nor is predicted is excluded from the macro mean.
--- Without samples it is nan, which is reported once.
function FBetaScore:compute() return self:averaged() end

return FBetaScore
