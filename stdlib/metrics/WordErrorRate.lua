--- stdlib/metrics/WordErrorRate.lua: the edit distance of words, divided by the number of
-- words of the targets.
local Transcript = require "ltrain.metrics.edit_distance_metric"

local WordErrorRate = Transcript:extend("WordErrorRate")

--- WordErrorRate()
function WordErrorRate:init(options) Transcript.init(self, options) end

--- Returns numerator over denominator.
function WordErrorRate:quotient() return self.edits / self.spoken end

return WordErrorRate
