--- stdlib/metrics/Precision.lua: the fraction of positive predictions that are right:
-- tp / (tp + fp).
local StatScores = require "ltrain.metrics.StatScores"

local Precision = StatScores:extend("Precision")

Precision.__arguments = "| task threshold num_classes num_labels average "
  .. "(multidim_average) top_k ignore_index (validate_args) zero_division"

Precision.higher_is_better = true

Precision.of_present = true

Precision.options = StatScores.options_with {
  zero_division = { type = "number", default = 0, choices = { 0, 1 },
    doc = "the value of a class where the denominator is 0" },
}

--- Precision{num_classes = 10, average = "macro"}
function Precision:init(options) StatScores.init(self, options) end

--- Returns the numerator and the denominator of the score.
function Precision:ratio(tp, fp, _, _) -- luacheck: no self
  return tp, tp + fp
end

--- Returns the precision; nan without samples, which is reported once.
function Precision:compute() return self:averaged() end

return Precision
