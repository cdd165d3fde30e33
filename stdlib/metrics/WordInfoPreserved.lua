--- stdlib/metrics/WordInfoPreserved.lua: word information preserved: (hits / target words) *
-- (hits / predicted words).
local Transcript = require "ltrain.metrics.edit_distance_metric"

local WordInfoPreserved = Transcript:extend("WordInfoPreserved")

WordInfoPreserved.higher_is_better = true

--- WordInfoPreserved()
function WordInfoPreserved:init(options) Transcript.init(self, options) end

--- Returns numerator over denominator.
function WordInfoPreserved:quotient()
  local right = self.longer - self.edits
  return right / self.spoken * (right / self.heard)
end

return WordInfoPreserved
