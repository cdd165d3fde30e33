--- stdlib/metrics/Specificity.lua: the fraction of negatives that are found: tn / (tn + fp).
local StatScores = require "ltrain.metrics.StatScores"

local Specificity = StatScores:extend("Specificity")

Specificity.__arguments = "| task threshold num_classes num_labels average "
  .. "(multidim_average) top_k ignore_index"

Specificity.higher_is_better = true

--- Specificity{num_classes = 10, average = "macro"}
function Specificity:init(options) StatScores.init(self, options) end

--- Returns the numerator and the denominator of the score.
function Specificity:ratio(_, fp, tn, _) -- luacheck: no self
  return tn, tn + fp
end

--- Returns the specificity; nan without samples, which is reported once.
function Specificity:compute() return self:averaged() end

return Specificity
