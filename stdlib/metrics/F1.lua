--- stdlib/metrics/F1.lua: the F1 score: the harmonic mean of precision and recall.
--
-- Binary by default; num_classes for ids of C classes, num_labels for C labels of 0 or 1 per row.
-- The definitions are those of torchmetrics; the score is computed from counts, which are summed
-- over ranks. N rows, C classes or labels.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local labelled = require "ltrain.metrics.labelled"

local F1 = Metric:extend("F1")

local OPTIONS <const> = {
  num_classes = { type = "integer", min = 2, doc = "number of classes: labels are ids" },
  num_labels = { type = "integer", min = 2, doc = "number of labels per row, each 0 or 1" },
  average = { type = "string", choices = { "macro", "micro", "weighted", "none" },
    doc = "over classes: the mean over those that occur, the score of all counts, the mean "
      .. "weighted by number of positives, or a tensor [C]" },
  ignore_index = { type = "integer", doc = "elements with this label are ignored" },
  threshold = { type = "number", default = 0.5,
    doc = "binary and num_labels: probabilities above it mean label 1" },
  from_logits = { type = "boolean", default = false,
    doc = "binary and num_labels: scores are logits: apply sigmoid" },
}

--- F1{num_classes = 10, average = "macro"}
function F1:init(options)
  local o = config.check(options, OPTIONS, "metrics.F1")
  labelled.check_threshold("F1", o)
  local size = labelled.check_average("F1", o, "'macro', 'micro', 'weighted' or 'none'")
  for name, value in next, o do self[name] = value end
  for _, name in ipairs { "tp", "fp", "fn" } do
    self:add_state(name, c.zeros({ size }, { dtype = "i64" }))
  end
end

-- Predicted and true, as bools [N, C]: the columns are counted.
local function yes_or_no(self, scores, labels)
  if not labelled.same_shape(scores, labels)
    or self.num_labels and scores.shape[2] ~= self.num_labels then
    errors.blame("metrics.F1: shapes do not fit: scores %s, labels %s%s",
      errors.show_shape(scores), errors.show_shape(labels),
      self.num_labels and ("; expected [N, %d, ...] of both"):format(self.num_labels) or "")
  end
  local said = labelled.is_float(scores)
    and labelled.above("F1", scores, self.threshold, self.from_logits) or scores:ne(0)
  if self.num_labels then return labelled.rows(said), labelled.rows(labels) end
  return said:reshape { -1, 1 }, labels:reshape { -1, 1 }
end

local function count_columns(self, said, labels)
  local truth = labels:ne(0)
  local wrong = said:ne(truth)
  if self.ignore_index then
    local counts = labels:ne(self.ignore_index)
    truth, said = truth:logical_and(counts), said:logical_and(counts)
    wrong = wrong:logical_and(counts)
  end
  self.tp = self.tp + said:logical_and(truth):sum(1)
  self.fp = self.fp + wrong:logical_and(said):sum(1)
  self.fn = self.fn + wrong:logical_and(truth):sum(1)
end

-- Predicted ids, [N]: the argument itself, or those of the highest scores.
local function ids_of(self, scores, labels)
  if labelled.same_shape(scores, labels) and not labelled.is_float(scores) then
    return scores:reshape { -1 }
  end
  labelled.check_classes("F1", scores, labels)
  if scores.shape[2] ~= self.num_classes then
    errors.blame("metrics.F1: num_classes = %d: got scores %s", self.num_classes,
      errors.show_shape(scores))
  end
  return scores:argmax(2):reshape { -1 }
end

local function count_ids(self, said, labels)
  if self.ignore_index then
    local counts = labels:ne(self.ignore_index)
    said, labels = said:masked_select(counts), labels:masked_select(counts)
  end
  said, labels = said:to "i64", labels:to "i64"
  local right = said:eq(labels):to "i64"
  local wrong = 1 - right
  self.tp = self.tp:scatter_add(labels, right, 1)
  self.fp = self.fp:scatter_add(said, wrong, 1)
  self.fn = self.fn:scatter_add(labels, wrong, 1)
end

--- Updates it with a batch. Binary: scores, or predictions of 0 and 1, and labels of the same
--- shape; num_classes: scores [N, C, ...] and ids [N, ...], or ids twice; num_labels: both [N, C,
--- ...].
function F1:update(scores, labels)
  labelled.check("F1", scores, labels)
  scores = scores:detach()
  if self.num_classes then
    count_ids(self, ids_of(self, scores, labels), labels:reshape { -1 })
  else
    count_columns(self, yes_or_no(self, scores, labels))
  end
end

-- 2 tp / (2 tp + fp + fn) of each element, 0 where nothing was counted.
local function scores_of(tp, fp, fn)
  local twice = tp * 2
  local all = twice + fp + fn
  return twice:to "f64" / all:clamp { min = 1 }:to "f64", all
end

-- With ids something is counted for every row; without, rows that are rightly "no" count nowhere.
local function without_counts(self)
  return self.num_classes and labelled.nothing(self) or 0.0
end

--- Returns the score. A class that is neither present nor predicted is left out of the macro mean.
--- Without samples it is nan with num_classes, which is reported once, else 0.
function F1:compute()
  local tp, fp, fn = self.tp, self.fp, self.fn
  local each, all = scores_of(tp, fp, fn)
  if self.average == "none" then return each end
  if self.average == "micro" then
    each, all = scores_of(tp:sum(), fp:sum(), fn:sum())
    return all:item() > 0 and each:item() or without_counts(self)
  elseif not self.average then
    return each:item()
  end
  local weights = self.average == "weighted" and tp + fn or all:gt(0):to "i64"
  if self.num_labels and self.average == "macro" then weights = c.ones_like(weights) end
  local total = weights:sum():item()
  if total == 0 then return without_counts(self) end
  return (each * weights:to "f64"):sum():item() / total
end

return F1
