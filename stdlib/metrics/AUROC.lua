--- stdlib/metrics/AUROC.lua: the area under the ROC curve.
--
-- It is the probability that a positive sample scores higher than a negative one. By default it is
-- exact: all scores are kept until the end of the epoch, and the area is computed from counts, so
-- that it has the same bits on any number of ranks. With `bins = n` scores in [0, 1] are counted
-- between n thresholds, which needs little memory. The binned area differs from the exact one by at
-- most half the fraction of pairs (positive, negative) whose scores are between the same two
-- thresholds. The definitions are those of torchmetrics; but without positive, or without negative,
-- samples the area is nan, not 0, and scores of exactly 1 are counted in bins too (torchmetrics
-- leaves them out: scores that are all 1 give 0, here 0.5 as without bins). N rows, C classes or
-- labels, T thresholds.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local labelled = require "ltrain.metrics.labelled"

local AUROC = Metric:extend("AUROC")

local OPTIONS <const> = {
  num_classes = { type = "integer", min = 2,
    doc = "number of classes: labels are ids; one class versus the rest" },
  num_labels = { type = "integer", min = 2, doc = "number of labels per row, each 0 or 1" },
  average = { type = "string", choices = { "macro", "weighted", "none" },
    doc = "over classes: the mean, the mean weighted by number of positives, or a tensor [C]" },
  bins = { type = "integer", min = 2, doc = "number of thresholds; exact by default" },
  from_logits = { type = "boolean", default = false,
    doc = "scores are logits: apply softmax (num_classes) or sigmoid" },
  ignore_index = { type = "integer", doc = "elements with this label are ignored" },
}

--- AUROC{bins = 200}
function AUROC:init(options)
  local o = config.check(options, OPTIONS, "metrics.AUROC")
  local size = labelled.check_average("AUROC", o, "'macro', 'weighted' or 'none'")
  for name, value in next, o do self[name] = value end
  if o.bins then
    self:add_state("right", c.zeros({ size, o.bins }, { dtype = "i64" }))
    self:add_state("wrong", c.zeros({ size, o.bins }, { dtype = "i64" }))
  else
    self:add_state("scores", {})
    self:add_state("labels", {})
  end
end

-- Scores [N, C]; labels [N, C], or [N] with num_classes.
local function columns(self, scores, labels)
  local size = self.num_classes or self.num_labels
  if not labelled.is_float(scores) then
    errors.blame("metrics.AUROC: scores must be floats: got %s", scores.dtype)
  elseif self.num_classes then
    labelled.check_classes("AUROC", scores, labels)
  elseif not labelled.same_shape(scores, labels) then
    errors.blame("metrics.AUROC: shapes do not fit: scores %s, labels %s; expected the same",
      errors.show_shape(scores), errors.show_shape(labels))
  end
  if size and scores.shape[2] ~= size then
    errors.blame("metrics.AUROC: %s = %d: got scores %s", self.num_classes and "num_classes"
      or "num_labels", size, errors.show_shape(scores))
  end
  if self.from_logits then scores = self.num_classes and scores:softmax(2) or scores:sigmoid() end
  if self.num_classes then return labelled.rows(scores), labels:reshape { -1 } end
  if self.num_labels then return labelled.rows(scores), labelled.rows(labels) end
  return scores:reshape { -1, 1 }, labels:reshape { -1, 1 }
end

-- Scores and truth (bool) of column `i`, without what is ignored.
local function column(self, scores, labels, i)
  local score, label = scores:select(2, i), labels
  if not self.num_classes then label = labels:select(2, i) end
  local truth = self.num_classes and label:eq(i - 1) or label:ne(0)
  if not self.ignore_index then return score, truth end
  local counts = label:ne(self.ignore_index)
  return score:masked_select(counts), truth:masked_select(counts)
end

-- The bin of each score: how many of the thresholds 0, 1/(T-1), ..., 1 it reaches, less one.
-- Rounding of the product is mended by a look at the thresholds themselves.
local function bins_of(score, bins)
  score = score:to "f32"
  local thresholds = c.arange(bins, { dtype = "f32", device = score.device }) / (bins - 1)
  local bin = (score * (bins - 1)):floor():to("i64"):clamp { min = 0, max = bins - 1 }
  bin = bin - score:lt(thresholds:gather(bin, 1)):to "i64"
  local above = (bin + 1):clamp { max = bins - 1 }
  local reaches = score:ge(thresholds:gather(above, 1)):logical_and(bin:lt(bins - 1))
  return bin + reaches:to "i64"
end

local function count(self, scores, labels)
  if scores:numel() == 0 then return end
  local low, high = scores:amin():item(), scores:amax():item()
  if not (low >= 0 and high <= 1) then
    errors.blame("metrics.AUROC: bins need scores from 0 to 1 (from_logits = true for "
      .. "logits): got %g to %g",
      low, high)
  end
  local right, wrong = {}, {}
  for i = 1, scores.shape[2] do
    local score, truth = column(self, scores, labels, i)
    local bin = bins_of(score, self.bins)
    local empty = c.zeros({ self.bins }, { dtype = "i64", device = score.device })
    right[i] = empty:scatter_add(bin, truth:to "i64", 1)
    wrong[i] = empty:scatter_add(bin, truth:logical_not():to "i64", 1)
  end
  self.right, self.wrong = self.right + c.stack(right), self.wrong + c.stack(wrong)
end

--- Updates it with a batch. Binary: scores and labels of the same shape, higher scores mean label
--- 1; num_classes: scores [N, C, ...] and ids [N, ...]; num_labels: both [N, C, ...].
function AUROC:update(scores, labels)
  labelled.check("AUROC", scores, labels)
  scores, labels = columns(self, scores:detach(), labels)
  if self.bins then
    count(self, scores, labels)
  else
    table.insert(self.scores, scores:clone())
    table.insert(self.labels, labels:clone())
  end
end

-- The area below the curve of running counts of positives and negatives, from (0, 0): exact in
-- integers until the last division. Returns it (nil if undefined) and the number of positives.
local function area(right, wrong)
  local n = right.shape[1]
  if n == 0 then return nil, 0 end
  local all_right, all_wrong = right[n]:item(), wrong[n]:item()
  if all_right == 0 or all_wrong == 0 then return nil, all_right end
  local first = c.zeros({ 1 }, { dtype = "i64", device = right.device })
  right, wrong = c.cat({ first, right }, 1), c.cat({ first, wrong }, 1)
  local widths = wrong:narrow(1, 2, n) - wrong:narrow(1, 1, n)
  local heights = right:narrow(1, 2, n) + right:narrow(1, 1, n)
  return (widths * heights):sum():item() / (2.0 * all_right * all_wrong), all_right
end

local function exact(score, truth)
  local n = score.shape[1]
  if n == 0 then return nil, 0 end
  local sorted, order = score:sort { descending = true }
  truth = truth:gather(order, 1)
  -- Equal scores are one point of the curve: the last of them.
  local last = c.tensor({ true }, { device = score.device })
  if n > 1 then
    last = c.cat({ sorted:narrow(1, 1, n - 1):ne(sorted:narrow(1, 2, n - 1)), last }, 1)
  end
  local right, wrong = truth:cumsum(1), truth:logical_not():cumsum(1)
  return area(right:masked_select(last), wrong:masked_select(last))
end

local function binned(right, wrong)
  return area(right:flip { 1 }:cumsum(1), wrong:flip { 1 }:cumsum(1))
end

-- Area and number of positives for each column.
local function areas(self)
  local list, rights = {}, {}
  local size = self.num_classes or self.num_labels or 1
  local scores, labels
  if not self.bins then
    if #self.scores == 0 then return list, rights, size end
    scores, labels = c.cat(self.scores, 1), c.cat(self.labels, 1)
  end
  for i = 1, size do
    if self.bins then
      list[i], rights[i] = binned(self.right[i], self.wrong[i])
    else
      list[i], rights[i] = exact(column(self, scores, labels, i))
    end
  end
  return list, rights, size
end

local ONE_SIDED <const> = "class %d: no row has this label, or all have: the class is ignored"

--- Returns the area; nan without samples, or if all labels are equal, which is reported once. Such
--- classes are left out of means.
function AUROC:compute()
  local list, rights, size = areas(self)
  local total, weight, undefined = 0.0, 0, nil
  for i = 1, size do
    local of_class = self.average == "weighted" and rights[i] or 1
    if list[i] then
      total, weight = total + list[i] * of_class, weight + of_class
    else
      undefined = undefined or i
    end
  end
  if undefined and size > 1 and weight > 0 then
    labelled.warn(self, ONE_SIDED:format(undefined - 1))
  end
  if self.average == "none" then
    for i = 1, size do list[i] = list[i] or labelled.NAN end
    return c.tensor(list, { dtype = "f64" })
  end
  if weight > 0 then return total / weight end
  return labelled.nothing(self, "there are no samples, or all labels are equal")
end

return AUROC
