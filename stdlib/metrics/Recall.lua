--- stdlib/metrics/Recall.lua: the fraction of positives that are found: tp / (tp + fn).
local StatScores = require "ltrain.metrics.StatScores"

local Recall = StatScores:extend("Recall")

Recall.__arguments = "| task threshold num_classes num_labels average "
  .. "(multidim_average) top_k ignore_index (validate_args) zero_division"

Recall.higher_is_better = true

Recall.of_present = true

Recall.options = StatScores.options_with {
  zero_division = { type = "number", default = 0, choices = { 0, 1 },
    doc = "the value of a class where the denominator is 0" },
}

--- Recall{num_classes = 10, average = "macro"}
function Recall:init(options) StatScores.init(self, options) end

--- Returns the numerator and the denominator of the score.
function Recall:ratio(tp, _, _, fn) -- luacheck: no self
  return tp, tp + fn
end

--- Returns the recall; nan without samples, which is reported once.
function Recall:compute() return self:averaged() end

return Recall
