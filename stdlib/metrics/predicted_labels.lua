--- stdlib/metrics/predicted_labels.lua: predicted classes and labels from scores, for
-- classification metrics.
--
-- N rows, C classes or labels, M elements that count.
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"

local predicted_labels = {}

--- Rows of the options of metrics that compare predictions with labels.
predicted_labels.options = {
  task = inputs.task,
  num_classes = { type = "integer", min = 2, doc = "number of classes: labels are ids" },
  num_labels = { type = "integer", min = 2, doc = "number of labels per row, each 0 or 1" },
  ignore_index = { type = "integer", doc = "elements with this label are ignored" },
  threshold = { type = "number", default = 0.5,
    doc = "binary and num_labels: probabilities above it mean label 1" },
  from_logits = { type = "boolean", default = false,
    doc = "binary and num_labels: scores are logits: apply sigmoid" },
}

--- Returns these rows and more, as the options of one metric.
function predicted_labels.with(rows)
  local all = {}
  for name, row in next, predicted_labels.options do all[name] = row end
  for name, row in next, rows do all[name] = row end
  return all
end

--- Checks the options of a metric and stores them as its fields. Returns its name and the options.
function predicted_labels.take(metric, options)
  local who = getmetatable(metric).__name
  local o = config.check(options, metric.options, "metrics." .. who)
  inputs.check_task(who, o)
  inputs.check_threshold(who, o)
  for name, value in next, o do metric[name] = value end
  return who, o
end

-- Ids of the classes with the highest scores; with top_k > 1 the label if it is among the k.
local function highest(metric, scores, labels)
  local k = metric.top_k or 1
  if k == 1 then return scores:argmax(2) end
  if k > scores.shape[2] then
    errors.blame("metrics.%s: top_k = %d: got scores %s", getmetatable(metric).__name, k,
      errors.show_shape(scores))
  end
  local _, best = scores:topk(k, 2)
  return best:eq(labels:unsqueeze(2)):any(2):where(labels, best:select(2, 1))
end

-- On a device the count itself finds them: nothing waits for it here.
local function check_range(metric, what, ids)
  local classes = metric.num_classes
  if not classes or ids:numel() == 0 or ids.device ~= "cpu" then return end
  local low, high = ids:min():item(), ids:max():item()
  if low >= 0 and high < classes then return end
  errors.blame("metrics.%s: %s are ids 0..%d (num_classes = %d): got %d",
    getmetatable(metric).__name, what, classes - 1, classes, low < 0 and low or high)
end

--- Returns predicted ids and labels [M], without ignored elements.
function predicted_labels.ids(metric, scores, labels)
  local who = getmetatable(metric).__name
  local said = scores
  if not inputs.same_shape(scores, labels) or inputs.is_float(scores) then
    inputs.check_classes(who, scores, labels)
    if metric.num_classes and scores.shape[2] ~= metric.num_classes then
      errors.blame("metrics.%s: num_classes = %d: got scores %s", who, metric.num_classes,
        errors.show_shape(scores))
    end
    said = highest(metric, scores, labels)
  elseif (metric.top_k or 1) > 1 then
    errors.blame("metrics.%s: top_k = %d needs scores [N, C, ...]: got ids %s", who, metric.top_k,
      errors.show_shape(scores))
  end
  said, labels = said:reshape { -1 }:to "i64", labels:reshape { -1 }:to "i64"
  if metric.ignore_index then
    local counts = labels:ne(metric.ignore_index)
    said, labels = said:masked_select(counts), labels:masked_select(counts)
  end
  check_range(metric, "predicted ids", said)
  check_range(metric, "labels", labels)
  return said, labels
end

--- Returns predictions and labels (bool) as columns [M, C] (binary: one column), and a mask of
--- those that are not ignored (nil: all).
function predicted_labels.columns(metric, scores, labels)
  local who, size = getmetatable(metric).__name, metric.num_labels
  if not inputs.same_shape(scores, labels) or size and scores.shape[2] ~= size then
    errors.blame("metrics.%s: shapes do not fit: scores %s, labels %s%s", who,
      errors.show_shape(scores), errors.show_shape(labels),
      size and ("; expected [N, %d, ...] of both"):format(size) or "")
  end
  local said = inputs.is_float(scores)
    and inputs.above(metric, scores) or scores:ne(0)
  if size then
    said, labels = inputs.rows(said), inputs.rows(labels)
  else
    said, labels = said:reshape { -1, 1 }, labels:reshape { -1, 1 }
  end
  return said, labels:ne(0), metric.ignore_index and labels:ne(metric.ignore_index)
end

return predicted_labels
