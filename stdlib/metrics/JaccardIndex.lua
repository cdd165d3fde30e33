--- stdlib/metrics/JaccardIndex.lua: the intersection over union of positives and predicted
-- positives: tp / (tp + fp + fn).
--
-- P. Jaccard, The Distribution of the Flora in the Alpine Zone, 1912.
local StatScores = require "ltrain.metrics.StatScores"
local c = require "ltrain.c"

local JaccardIndex = StatScores:extend("JaccardIndex")

JaccardIndex.__arguments = "| task threshold num_classes num_labels average ignore_index"

JaccardIndex.higher_is_better = true

JaccardIndex.options = StatScores.options_with {
  zero_division = { type = "number", default = 0, choices = { 0, 1 },
    doc = "the value of a class where the denominator is 0" },
}

--- JaccardIndex{num_classes = 10, average = "macro"}
function JaccardIndex:init(options) StatScores.init(self, options) end

--- Returns the numerator and the denominator of the score.
function JaccardIndex:ratio(tp, fp, _, fn) -- luacheck: no self
  return tp, tp + fp + fn
end

-- Whether an integer is the id of a class.
local function is_class(self, index)
  return index and self.num_classes and index >= 0 and index < self.num_classes
end

--- Returns the index; nan without samples, which is reported once. An ignored class counts
--- nowhere, not even where it is predicted.
function JaccardIndex:compute()
  if not is_class(self, self.ignore_index) then return self:averaged() end
  local said = self.said
  local ids = c.arange(self.num_classes, { dtype = "i64", device = said.device })
  self.said = said * ids:ne(self.ignore_index):to "i64"
  local value = self:averaged()
  self.said = said
  return value
end

return JaccardIndex
