--- stdlib/metrics/MatchErrorRate.lua: the match error rate: the edit distance of words, divided
-- by substitutions, deletions, insertions and hits.
local Transcript = require "ltrain.metrics.edit_distance_metric"

local MatchErrorRate = Transcript:extend("MatchErrorRate")

--- MatchErrorRate()
function MatchErrorRate:init(options) Transcript.init(self, options) end

--- Returns numerator over denominator.
function MatchErrorRate:quotient() return self.edits / self.longer end

return MatchErrorRate
