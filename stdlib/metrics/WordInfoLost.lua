--- stdlib/metrics/WordInfoLost.lua: word information lost: 1 - (hits / target words) *
-- (hits / predicted words).
local Transcript = require "ltrain.metrics.edit_distance_metric"
local WordInfoPreserved = require "ltrain.metrics.WordInfoPreserved"

local WordInfoLost = Transcript:extend("WordInfoLost")

--- WordInfoLost()
function WordInfoLost:init(options) Transcript.init(self, options) end

--- Returns numerator over denominator.
function WordInfoLost:quotient() return 1 - WordInfoPreserved.quotient(self) end

return WordInfoLost
