--- stdlib/metrics/CharErrorRate.lua: the edit distance of characters, divided by the number of
-- characters of the targets.
local Transcript = require "ltrain.metrics.edit_distance_metric"

local CharErrorRate = Transcript:extend("CharErrorRate")

--- CharErrorRate()
function CharErrorRate:init(options) Transcript.init(self, options) end

--- The unit of comparison: characters.
CharErrorRate.unit = "characters"

--- Returns numerator over denominator.
function CharErrorRate:quotient() return self.edits / self.spoken end

return CharErrorRate
