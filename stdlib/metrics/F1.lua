--- stdlib/metrics/F1.lua: the F1 score: the harmonic mean of precision and recall.
--
-- Binary by default; num_classes for ids of C classes, num_labels for C labels of 0 or 1 per row.
local FBetaScore = require "ltrain.metrics.FBetaScore"
local StatScores = require "ltrain.metrics.StatScores"

local F1 = FBetaScore:extend("F1")

F1.__arguments = "| task threshold num_classes num_labels average"

F1.options = StatScores.options_with { zero_division = FBetaScore.options.zero_division }

--- F1{num_classes = 10, average = "macro"}
function F1:init(options) FBetaScore.init(self, options) end

return F1
