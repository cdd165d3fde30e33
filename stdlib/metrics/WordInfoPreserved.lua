--- stdlib/metrics/WordInfoPreserved.lua: the fraction of words that are right, of the targets
-- times that of the predictions.
local Transcript = require "ltrain.metrics.transcript"

local WordInfoPreserved = Transcript:extend("WordInfoPreserved")

WordInfoPreserved.higher_is_better = true

--- WordInfoPreserved()
function WordInfoPreserved:init(options) Transcript.init(self, options) end

--- Its value.
function WordInfoPreserved:quotient()
  local right = self.longer - self.edits
  return right / self.spoken * (right / self.heard)
end

return WordInfoPreserved
