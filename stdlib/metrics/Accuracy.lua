--- stdlib/metrics/Accuracy.lua: the fraction of correct predictions.
--
-- N rows, C classes.
local Metric = require "ltrain.metrics.Metric"
local config = require "ltrain.core.config"
local labelled = require "ltrain.metrics.labelled"

local Accuracy = Metric:extend("Accuracy")

local OPTIONS <const> = {
  top_k = { type = "integer", default = 1, min = 1,
    doc = "a prediction is correct if the label is among the k highest scores" },
  ignore_index = { type = "integer", doc = "rows with this label are ignored" },
  threshold = { type = "number", default = 0.5,
    doc = "binary: probabilities above it mean label 1" },
  from_logits = { type = "boolean", default = false,
    doc = "binary: scores are logits: apply sigmoid" },
}

--- Accuracy{top_k = 5}
function Accuracy:init(options)
  local o = config.check(options, OPTIONS, "metrics.Accuracy")
  labelled.check_threshold("Accuracy", o)
  self.top_k, self.ignore_index, self.threshold = o.top_k, o.ignore_index, o.threshold
  self.from_logits = o.from_logits
  self:add_state("correct", 0)
  self:add_state("total", 0)
end

-- Right or wrong for each label, as a bool tensor of the labels' shape.
local function right_answers(self, scores, labels)
  if labelled.same_shape(scores, labels) then
    if labelled.is_float(scores) then
      scores = labelled.above("Accuracy", scores, self.threshold, self.from_logits):to("i64")
    end
    return scores:eq(labels)
  end
  labelled.check_classes("Accuracy", scores, labels)
  if self.top_k == 1 then return scores:argmax(2):eq(labels) end
  local _, best = scores:topk(self.top_k, 2)
  return best:eq(labels:unsqueeze(2)):any(2)
end

--- Updates it with a batch: scores [N, C] (or [N, C, ...], or [N] if binary, or ids) and ids.
function Accuracy:update(scores, labels)
  labelled.check("Accuracy", scores, labels)
  local right = right_answers(self, scores, labels)
  local counted = labels:numel()
  if self.ignore_index then
    local counts = labels:ne(self.ignore_index)
    right = right:logical_and(counts)
    counted = counts:sum():item()
  end
  self.correct = self.correct + right:sum():item()
  self.total = self.total + counted
end

--- Returns the fraction of correct predictions; nan without samples, which is reported once.
function Accuracy:compute()
  return self.total > 0 and self.correct / self.total or labelled.nothing(self)
end

return Accuracy
