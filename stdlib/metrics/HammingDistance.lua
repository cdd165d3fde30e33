--- stdlib/metrics/HammingDistance.lua: the Hamming distance: the fraction of labels predicted
-- wrongly.
--
-- With num_classes and an average other than "micro": the fraction of each class's samples.
local Accuracy = require "ltrain.metrics.Accuracy"
local StatScores = require "ltrain.metrics.StatScores"

local HammingDistance = StatScores:extend("HammingDistance")

HammingDistance.__arguments = "| task threshold num_classes num_labels average "
  .. "(multidim_average) top_k ignore_index"

HammingDistance.higher_is_better = false

--- HammingDistance{num_labels = 5, average = "micro"}
function HammingDistance:init(options)
  StatScores.init(self, options)
  self.zero_division = 1.0
end

--- Returns the numerator and the denominator of the score.
function HammingDistance:ratio(tp, fp, tn, fn)
  local right, all = Accuracy.ratio(self, tp, fp, tn, fn)
  return all - right, all
end

--- Returns the distance; nan without samples, which is reported once.
function HammingDistance:compute() return self:averaged() end

return HammingDistance
