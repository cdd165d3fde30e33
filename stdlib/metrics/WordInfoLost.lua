--- stdlib/metrics/WordInfoLost.lua: 1 less the fraction of words that are right, of the targets
-- times that of the predictions.
local Transcript = require "ltrain.metrics.transcript"
local WordInfoPreserved = require "ltrain.metrics.WordInfoPreserved"

local WordInfoLost = Transcript:extend("WordInfoLost")

--- WordInfoLost()
function WordInfoLost:init(options) Transcript.init(self, options) end

--- Its value.
function WordInfoLost:quotient() return 1 - WordInfoPreserved.quotient(self) end

return WordInfoLost
