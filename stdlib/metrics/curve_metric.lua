--- stdlib/metrics/curve_metric.lua: the base class of ROC, PrecisionRecallCurve and the areas under
--- them.
--
-- By default they are exact: all scores are kept until the end of the epoch, and the result is
-- computed from integer counts, so that it has the same bits on any number of ranks. With
-- `thresholds` only a histogram of scores between them is kept, which needs little memory. N rows,
-- C classes or labels, T thresholds, P points of a curve.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"

local Curve = Metric:extend("Curve")

local ROWS <const> = {
  task = inputs.task,
  num_classes = { type = "integer", min = 2,
    doc = "number of classes: labels are ids; one class versus the rest" },
  num_labels = { type = "integer", min = 2, doc = "number of labels per row, each 0 or 1" },
  thresholds = { type = "integer|table|tensor", min = 0,
    doc = "a number of thresholds, evenly from 0 to 1, or a list of them; exact by default" },
  from_logits = { type = "boolean", default = false,
    doc = "scores are logits: apply softmax (num_classes) or sigmoid" },
  ignore_index = { type = "integer", doc = "elements with this label are ignored" },
}

local AVERAGE <const> = { type = "string", choices = { "macro", "weighted", "none" },
  doc = "over classes: the mean, the mean weighted by number of positives, or a tensor [C]" }

--- Returns the options of a metric: `rows`, and those of every curve.
function Curve.options_with(rows)
  local all = {}
  for name, row in next, ROWS do all[name] = row end
  for name, row in next, rows do all[name] = row end
  return all
end

--- The options of the area under a curve.
Curve.of_area = Curve.options_with { average = AVERAGE }

Curve.options = Curve.options_with {}

-- The thresholds as a tensor [T] of f32, ascending.
local function grid_of(who, given)
  local grid
  if math.type(given) == "integer" then
    if given < 2 then
      errors.blame("metrics.%s: thresholds must be at least 2: got %d", who, given)
    end
    return c.arange(given, { dtype = "f32" }) / (given - 1)
  end
  grid = (type(given) == "table" and c.tensor(given) or given):to "f32"
  local n = grid.ndim == 1 and grid.shape[1] or 0
  local rises = n > 0 and grid[1]:item() >= 0 and grid[n]:item() <= 1
    and (n == 1 or grid:narrow(1, 2, n - 1):gt(grid:narrow(1, 1, n - 1)):all():item())
  if not rises then
    errors.blame("metrics.%s: thresholds must be a list that rises from 0 to 1: got %s", who,
      errors.show(given))
  end
  return grid
end

function Curve:init(options)
  local who = getmetatable(self).__name
  local o = config.check(options, self.options, "metrics." .. who)
  inputs.check_task(who, o)
  if self.options.average then
    inputs.check_average(who, o, "'macro', 'weighted' or 'none'")
  elseif o.num_classes and o.num_labels then
    errors.blame("metrics.%s: num_classes and num_labels exclude each other", who)
  end
  for name, value in next, o do self[name] = value end
  if o.thresholds then
    self._grid = grid_of(who, o.thresholds)
    local size = { o.num_classes or o.num_labels or 1, self._grid.shape[1] + 1 }
    self:add_state("right", c.zeros(size, { dtype = "i64" }))
    self:add_state("wrong", c.zeros(size, { dtype = "i64" }))
  else
    self:add_state("scores", {})
    self:add_state("labels", {})
  end
end

-- Scores [N, C]; labels [N, C], or [N] with num_classes.
local function columns(self, scores, labels)
  local who, size = getmetatable(self).__name, self.num_classes or self.num_labels
  if not inputs.is_float(scores) then
    errors.blame("metrics.%s: scores must be floats: got %s", who, scores.dtype)
  elseif self.num_classes then
    inputs.check_classes(who, scores, labels)
  elseif not inputs.same_shape(scores, labels) then
    errors.blame("metrics.%s: shapes do not fit: scores %s, labels %s; expected the same", who,
      errors.show_shape(scores), errors.show_shape(labels))
  end
  if size and scores.shape[2] ~= size then
    errors.blame("metrics.%s: %s = %d: got scores %s", who, self.num_classes and "num_classes"
      or "num_labels", size, errors.show_shape(scores))
  end
  if self.from_logits then scores = self.num_classes and scores:softmax(2) or scores:sigmoid() end
  if self.num_classes then return inputs.rows(scores), labels:reshape { -1 } end
  if self.num_labels then return inputs.rows(scores), inputs.rows(labels) end
  return scores:reshape { -1, 1 }, labels:reshape { -1, 1 }
end

-- Scores and labels (bool) of column `i`, without ignored elements.
local function column(self, scores, labels, i)
  local score, label = scores:select(2, i), labels
  if not self.num_classes then label = labels:select(2, i) end
  local truth = self.num_classes and label:eq(i - 1) or label:ne(0)
  if not self.ignore_index then return score, truth end
  local counts = label:ne(self.ignore_index)
  return score:masked_select(counts), truth:masked_select(counts)
end

-- A histogram of scores by the number of thresholds that they reach.
local function count(self, scores, labels)
  if scores:numel() == 0 then return end
  inputs.check_probabilities(self, scores, "thresholds need scores")
  local right, wrong = {}, {}
  local grid = self._grid:to(scores.device)
  for i = 1, scores.shape[2] do
    local score, truth = column(self, scores, labels, i)
    local reached = c.bucketize(score:to "f32", grid, { right = true })
    local empty = c.zeros({ grid.shape[1] + 1 }, { dtype = "i64", device = score.device })
    right[i] = empty:scatter_add(1, reached, truth:to "i64")
    wrong[i] = empty:scatter_add(1, reached, truth:logical_not():to "i64")
  end
  self.right, self.wrong = self.right + c.stack(right), self.wrong + c.stack(wrong)
end

--- Metrics with the same key have the same states: a MetricCollection updates them once.
function Curve:counts_key()
  local grid = self._grid and table.concat(self._grid:tolist(), " ")
  return ("Curve %s %s %s %s %s"):format(self.num_classes, self.num_labels, self.ignore_index,
    self.from_logits, grid)
end

--- Updates the metric with a batch. Binary: scores and labels of the same shape, higher scores mean
--- label 1; num_classes: scores [N, C, ...] and ids [N, ...]; num_labels: both [N, C, ...].
function Curve:update(scores, labels)
  inputs.check(getmetatable(self).__name, scores, labels)
  scores, labels = columns(self, scores:detach(), labels)
  if self.thresholds then
    count(self, scores, labels)
  else
    table.insert(self.scores, scores:clone())
    table.insert(self.labels, labels:clone())
  end
end

-- Counts of positives and negatives that are >= each distinct score, in descending order.
local function exact(score, truth)
  local n = score.shape[1]
  if n == 0 then return nil end
  local sorted, order = score:sort { descending = true }
  truth = truth:gather(1, order)
  -- Equal scores are one point of the curve: the last of them.
  local last = c.tensor({ true }, { device = score.device })
  if n > 1 then
    last = c.cat({ sorted:narrow(1, 1, n - 1):ne(sorted:narrow(1, 2, n - 1)), last }, 1)
  end
  local right, wrong = truth:cumsum(1), truth:logical_not():cumsum(1)
  return { right = right:masked_select(last), wrong = wrong:masked_select(last),
    thresholds = sorted:masked_select(last),
    positives = right[n]:item(), negatives = wrong[n]:item() }
end

-- The same for the option `thresholds`.
local function binned(self, i)
  local function reach(counts)
    return counts:narrow(1, 2, counts.shape[1] - 1):flip { 1 }:cumsum(1)
  end
  local right, wrong = self.right[i], self.wrong[i]
  return { right = reach(right), wrong = reach(wrong),
    thresholds = self._grid:to(right.device):flip { 1 },
    positives = right:sum():item(), negatives = wrong:sum():item() }
end

--- Returns for each column the positives and negatives >= each threshold, descending: tables of
--- `right`, `wrong`, `thresholds` (tensors [P]), and the numbers of all `positives` and
--- `negatives`; false for a column without samples.
function Curve:points()
  local list, scores, labels = {}, nil, nil
  if not self.thresholds and #self.scores > 0 then
    scores, labels = c.cat(self.scores, 1), c.cat(self.labels, 1)
  end
  for i = 1, self.num_classes or self.num_labels or 1 do
    if self.thresholds then
      list[i] = binned(self, i)
      if list[i].positives + list[i].negatives == 0 then list[i] = false end
    else
      list[i] = scores and exact(column(self, scores, labels, i)) or false
    end
  end
  return list
end

--- Returns the three results of fn(points) for each column: tensors if binary, else lists of them.
function Curve:results(fn)
  local lists = { {}, {}, {} }
  for i, points in ipairs(self:points()) do
    if not points then
      inputs.warn(self, "there were no samples: the curve is empty")
      local none = c.zeros({ 0 }, { dtype = "f64" })
      points = { right = none, wrong = none, thresholds = none, positives = 0, negatives = 0 }
    end
    for k, value in ipairs { fn(points) } do lists[k][i] = value end
  end
  if self.num_classes or self.num_labels then return table.unpack(lists) end
  return lists[1][1], lists[2][1], lists[3][1]
end

--- Converts tensors [P] of x and y, or lists of them for each class, to a series and its x for
--- lt.plot.
function Curve.lines(x, y)
  if c.is_tensor(x) then return y, x end
  local xs, ys = {}, {}
  for i, one in ipairs(x) do
    local name = ("class %d"):format(i - 1)
    xs[name], ys[name] = one, y[i]
  end
  return ys, xs
end

--- Returns the average over columns of fn(points), an area. Columns where it is nil (undefined) are
--- excluded, which is reported once with the text `why`.
function Curve:average_of(fn, why)
  local list, total, weight, undefined = {}, 0.0, 0, nil
  local all = self:points()
  for i, points in ipairs(all) do
    list[i] = points and fn(points) or inputs.NAN
    local of_class = self.average == "weighted" and points and points.positives or 1
    if list[i] == list[i] then
      total, weight = total + list[i] * of_class, weight + of_class
    else
      undefined = undefined or i
    end
  end
  if undefined and #all > 1 and weight > 0 then
    inputs.warn(self, ("class %d: %s: the class is ignored"):format(undefined - 1, why))
  end
  if self.average == "none" then return c.tensor(list, { dtype = "f64" }) end
  if weight > 0 then return total / weight end
  return inputs.nothing(self, #all == 1 and self.nothing_to_rank or nil)
end

return Curve
