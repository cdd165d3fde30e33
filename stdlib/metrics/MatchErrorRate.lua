--- stdlib/metrics/MatchErrorRate.lua: the edit distance of words, divided by the number of
-- words of the longer of prediction and target.
local Transcript = require "ltrain.metrics.transcript"

local MatchErrorRate = Transcript:extend("MatchErrorRate")

--- MatchErrorRate()
function MatchErrorRate:init(options) Transcript.init(self, options) end

--- Its value.
function MatchErrorRate:quotient() return self.edits / self.longer end

return MatchErrorRate
