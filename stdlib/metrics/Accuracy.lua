--- stdlib/metrics/Accuracy.lua: the fraction of correct predictions.
--
-- With num_classes or num_labels it can be averaged over classes: the accuracy of a class is the
-- fraction of its samples predicted correctly (its recall), that of a label the fraction of rows. N
-- rows, C classes.
local StatScores = require "ltrain.metrics.StatScores"
local deferred_sums = require "ltrain.metrics.deferred_sums"
local inputs = require "ltrain.metrics.classification_inputs"
local predicted_labels = require "ltrain.metrics.predicted_labels"

local Accuracy = StatScores:extend("Accuracy")

Accuracy.__arguments = "| task threshold num_classes num_labels average "
  .. "(multidim_average) top_k ignore_index"

Accuracy.higher_is_better = true

Accuracy.of_present = true

Accuracy.options = StatScores.options_with {
  num_classes = { type = "integer", min = 2,
    doc = "number of classes, required for an average" },
}

--- Accuracy{top_k = 5}
function Accuracy:init(options)
  if type(options) == "table" and (options.num_classes or options.num_labels) then
    return StatScores.init(self, options)
  end
  local who, o = predicted_labels.take(self, options)
  inputs.check_average(who, o)
  self:add_state("correct", 0)
  self:add_state("total", 0)
end

-- Whether each label is predicted correctly, as a bool tensor of the labels' shape.
local function right_answers(self, scores, labels)
  if inputs.same_shape(scores, labels) then
    if inputs.is_float(scores) then
      scores = inputs.above(self, scores):to("i64")
    end
    return scores:eq(labels)
  end
  inputs.check_classes("Accuracy", scores, labels)
  if self.top_k == 1 then return scores:argmax(2):eq(labels) end
  local _, best = scores:topk(self.top_k, 2)
  return best:eq(labels:unsqueeze(2)):any(2)
end

--- Updates the metric with a batch: scores [N, C] (or [N, C, ...], or [N] if binary, or ids) and
--- ids; with num_labels both [N, C, ...].
function Accuracy:update(scores, labels)
  if self.seen then return StatScores.update(self, scores, labels) end
  inputs.check("Accuracy", scores, labels)
  local right = right_answers(self, scores, labels)
  local counted = labels:numel()
  if self.ignore_index then
    local counts = labels:ne(self.ignore_index)
    right = right:logical_and(counts)
    counted = counts:sum()
  end
  deferred_sums.add(self, "correct", right:sum())
  deferred_sums.add(self, "total", counted)
end

--- Returns the numerator and the denominator of the score.
function Accuracy:ratio(tp, fp, tn, fn)
  if self.num_classes then return tp, tp + fn end
  return tp + tn, tp + fp + tn + fn
end

--- Returns the fraction of correct predictions; nan without samples, which is reported once.
function Accuracy:compute()
  if self.seen then return self:averaged() end
  return self.total > 0 and self.correct / self.total or inputs.nothing(self)
end

return Accuracy
