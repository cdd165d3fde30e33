--- stdlib/metrics/HammingDistance.lua: the fraction of labels that are predicted wrongly.
--
-- Of classes, with an average other than "micro": the fraction of each class's samples.
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

--- Its numerator and denominator.
function HammingDistance:ratio(tp, fp, tn, fn)
  local right, all = Accuracy.ratio(self, tp, fp, tn, fn)
  return all - right, all
end

--- Returns the distance; nan without samples, which is reported once.
function HammingDistance:compute() return self:averaged() end

return HammingDistance
