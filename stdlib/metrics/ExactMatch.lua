--- stdlib/metrics/ExactMatch.lua: the fraction of rows whose labels are all predicted correctly.
--
-- N rows, C classes or labels.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"
local predicted_labels = require "ltrain.metrics.predicted_labels"

local ExactMatch = Metric:extend("ExactMatch")

ExactMatch.__arguments = "| task threshold num_classes num_labels "
  .. "(multidim_average) ignore_index"

ExactMatch.higher_is_better = true

ExactMatch.options = predicted_labels.with {}

--- ExactMatch{num_labels = 5}
function ExactMatch:init(options)
  local who = predicted_labels.take(self, options)
  if (self.num_classes == nil) == (self.num_labels == nil) then
    errors.blame("metrics.%s: give num_classes (rows of several ids) or num_labels", who)
  end
  self:add_state("correct", c.zeros({}, { dtype = "i64" }))
  self:add_state("total", 0)
end

-- Whether elements are predicted correctly, [N, ...]; true for ignored ones.
local function right_answers(self, scores, labels)
  local said = scores
  if self.num_labels then
    said = predicted_labels.columns(self, scores, labels)
    labels = inputs.rows(labels)
    scores = labels
  end
  if not inputs.same_shape(scores, labels) then
    inputs.check_classes("ExactMatch", scores, labels)
    said = scores:argmax(2)
  end
  local right = said:eq(labels)
  if self.ignore_index then right = right:logical_or(labels:eq(self.ignore_index)) end
  return right
end

--- Updates the metric with a batch: num_labels: scores and labels [N, C]; num_classes: scores [N,
--- C, ...] and ids [N, ...], or ids twice. Ignored elements count as correct.
function ExactMatch:update(scores, labels)
  inputs.check("ExactMatch", scores, labels)
  local right = right_answers(self, scores:detach(), labels)
  local rows = right:reshape { right.shape[1], -1 }
  self.correct = self.correct + rows:all(2):sum()
  self.total = self.total + rows.shape[1]
end

--- Returns the fraction; nan without samples, which is reported once.
function ExactMatch:compute()
  return self.total > 0 and self.correct:item() / self.total or inputs.nothing(self)
end

return ExactMatch
