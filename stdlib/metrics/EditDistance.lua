--- stdlib/metrics/EditDistance.lua: the edit distance (Levenshtein's) of texts, by characters.
local Transcript = require "ltrain.metrics.edit_distance_metric"

local EditDistance = Transcript:extend("EditDistance")

EditDistance.__arguments = "| substitution_cost reduction"

EditDistance.options = {
  substitution_cost = { type = "integer", default = 1, min = 0,
    doc = "the cost of a substitution" },
  reduction = { type = "string", default = "mean", choices = { "mean", "sum" },
    doc = "reduction over pairs of texts" },
}

--- EditDistance{reduction = "sum"}
function EditDistance:init(options) Transcript.init(self, options) end

--- The unit of comparison: characters.
EditDistance.unit = "characters"

--- Returns numerator over denominator.
function EditDistance:quotient()
  return self.reduction == "sum" and self.edits or self.edits / self.texts
end

return EditDistance
