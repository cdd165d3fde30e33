--- stdlib/metrics/StatScores.lua: counts of true and false positives and negatives.
--
-- Binary by default; num_classes for ids of C classes, one versus the rest; num_labels for C labels
-- of 0 or 1 per row. Precision, Recall, F1 and others are computed from these counts, which are
-- summed over ranks; the definitions are those of torchmetrics. N rows, C classes or labels.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local inputs = require "ltrain.metrics.classification_inputs"
local predicted_labels = require "ltrain.metrics.predicted_labels"

local StatScores = Metric:extend("StatScores")

StatScores.__arguments = "| task threshold num_classes num_labels average "
  .. "(multidim_average) top_k ignore_index"

StatScores.options = predicted_labels.with {
  average = { type = "string", choices = { "macro", "micro", "weighted", "none" },
    doc = "over classes: the mean over those that occur, the score of all counts, the mean "
      .. "weighted by number of positives, or a tensor [C]" },
  top_k = { type = "integer", default = 1, min = 1,
    doc = "num_classes: a label among the k highest scores is predicted" },
}

--- Returns the options of a metric that is computed from these counts: `rows`, and those of
--- StatScores that apply.
function StatScores.options_with(rows)
  local all = {}
  for name, row in next, StatScores.options do all[name] = row end
  for name, row in next, rows do all[name] = row end
  return all
end

-- Counts of each class: correct, predicted, and true samples.
local STATES <const> = { "right", "said", "meant" }

--- StatScores{num_classes = 10, average = "macro"}
function StatScores:init(options)
  local who, o = predicted_labels.take(self, options)
  local size = inputs.check_average(who, o, "'macro', 'micro', 'weighted' or 'none'")
  if self.top_k > 1 and not self.num_classes then
    inputs.needs_classes(who, "top_k", self.top_k)
  end
  for _, name in ipairs(STATES) do self:add_state(name, c.zeros({ size }, { dtype = "i64" })) end
  self:add_state("seen", self.num_classes and 0 or c.zeros({ size }, { dtype = "i64" }))
end

--- Metrics with the same key have the same states: a MetricCollection updates them once.
function StatScores:counts_key()
  return ("StatScores %s %s %s %s %s %s %s"):format(self.num_classes, self.num_labels,
    self.ignore_index, self.threshold, self.from_logits, self.top_k, #self:states())
end

local function count_columns(self, said, truth, counts)
  if counts then truth, said = truth:logical_and(counts), said:logical_and(counts) end
  self.right = self.right + said:logical_and(truth):sum(1)
  self.said, self.meant = self.said + said:sum(1), self.meant + truth:sum(1)
  self.seen = self.seen + (counts and counts:sum(1) or said.shape[1])
end

local function count_ids(self, said, labels)
  local right = said:eq(labels):to "i64"
  local each = c.ones_like(right)
  self.right = self.right:scatter_add(1, labels, right)
  self.meant = self.meant:scatter_add(1, labels, each)
  self.said = self.said:scatter_add(1, said, each)
  self.seen = self.seen + said:numel()
end

--- Updates the metric with a batch. Binary: scores, or predictions of 0 and 1, and labels of the
--- same shape; num_classes: scores [N, C, ...] and ids [N, ...], or ids twice; num_labels: both [N,
--- C, ...].
function StatScores:update(scores, labels)
  inputs.check(getmetatable(self).__name, scores, labels)
  scores = scores:detach()
  if self.num_classes then
    count_ids(self, predicted_labels.ids(self, scores, labels))
  else
    count_columns(self, predicted_labels.columns(self, scores, labels))
  end
end

-- Numerator over denominator in f64; the option zero_division where the denominator is 0.
local function divide(self, above, below)
  local value = above:to "f64" / below:to "f64"
  return below:eq(0):where(c.full_like(value, self.zero_division or 0.0), value)
end

--- Returns true and false positives, true and false negatives of each class.
function StatScores:counts()
  local fp, fn = self.said - self.right, self.meant - self.right
  return self.right, fp, self.seen - (self.right + fp + fn), fn
end

-- The weights of the classes in a mean.
local function weights_of(self)
  if self.average == "weighted" then return self.meant end
  if self.num_labels then return c.ones_like(self.meant) end
  local there = self.of_present and self.top_k > 1 and self.meant or self.meant + self.said
  return there:gt(0):to "i64"
end

--- Whether, with top_k > 1, classes that are predicted but do not occur are excluded from the
--- macro mean, as torchmetrics does for some metrics.
StatScores.of_present = false

local function is_empty(self)
  local seen = self.seen
  return (type(seen) == "number" and seen or seen:sum():item()) == 0
end

--- Returns the average of a metric that overrides `ratio(tp, fp, tn, fn)`, which returns numerator
--- and denominator; nan without samples, which is reported once.
function StatScores:averaged()
  local tp, fp, tn, fn = self:counts()
  if self.average == "none" then return divide(self, self:ratio(tp, fp, tn, fn)) end
  if is_empty(self) then return inputs.nothing(self) end
  if self.average == "micro" then
    return divide(self, self:ratio(tp:sum(), fp:sum(), tn:sum(), fn:sum())):item()
  end
  local each = divide(self, self:ratio(tp, fp, tn, fn))
  if not self.average then return each:item() end
  local weights = weights_of(self)
  local total = weights:sum():item()
  return total > 0 and (each * weights:to "f64"):sum():item() / total or 0.0
end

--- Returns a tensor of tp, fp, tn, fn and tp + fn: of each class [C, 5]; averaged or binary [5].
function StatScores:compute()
  local tp, fp, tn, fn = self:counts()
  local all = c.stack({ tp, fp, tn, fn, self.meant }, 2)
  if self.average == "none" then return all end
  if self.average == "micro" then return all:sum(1) end
  if not self.average then return all:reshape { 5 } end
  all = all:to "f64"
  if self.average == "macro" then return all:mean(1) end
  local weights = self.meant:to "f64"
  return (all * (weights / weights:sum()):unsqueeze(2)):sum(1)
end

return StatScores
