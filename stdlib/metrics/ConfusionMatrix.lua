--- stdlib/metrics/ConfusionMatrix.lua: the confusion matrix: counts of samples by true and
-- predicted class.
--
-- Rows are true classes, columns predicted ones. M elements, C classes or labels.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"
local predicted_labels = require "ltrain.metrics.predicted_labels"

local ConfusionMatrix = Metric:extend("ConfusionMatrix")

ConfusionMatrix.__arguments = "| task threshold num_classes num_labels normalize ignore_index"

ConfusionMatrix.options = predicted_labels.with {
  normalize = { type = "string", default = "none", choices = { "none", "true", "pred", "all" },
    doc = "divide by the sum of each row, of each column, or of all" },
}

--- ConfusionMatrix{num_classes = 10}
function ConfusionMatrix:init(options)
  local who = predicted_labels.take(self, options)
  if self.num_classes and self.num_labels then
    errors.blame("metrics.%s: num_classes and num_labels exclude each other", who)
  end
  local side, count = self.num_classes or 2, self.num_labels or 1
  self:add_state("cells", c.zeros({ count * side * side }, { dtype = "i64" }))
end

--- Metrics with the same key have the same states: a MetricCollection updates them once.
function ConfusionMatrix:counts_key()
  return ("ConfusionMatrix %s %s %s %s %s"):format(self.num_classes, self.num_labels,
    self.ignore_index, self.threshold, self.from_logits)
end

-- The cell of each element [M]: (true class, predicted class) of its label, and its weight.
local function cells_of(self, scores, labels)
  if self.num_classes then
    local said, ids = predicted_labels.ids(self, scores, labels)
    local wrong = ids:lt(0):logical_or(said:lt(0)):logical_or(said:ge(self.num_classes))
    return wrong:where(c.full_like(ids, -1), ids * self.num_classes + said), c.ones_like(ids)
  end
  local said, truth, counts = predicted_labels.columns(self, scores, labels)
  local cell = truth:to "i64" * 2 + said:to "i64"
  cell = cell + c.arange(self.num_labels or 1, { dtype = "i64", device = cell.device }) * 4
  return cell:reshape { -1 }, (counts or c.ones_like(cell)):to "i64":reshape { -1 }
end

--- Updates the metric with a batch. Binary: scores, or predictions of 0 and 1, and labels of the
--- same shape; num_classes: scores [N, C, ...] and ids [N, ...], or ids twice; num_labels: both [N,
--- C, ...].
function ConfusionMatrix:update(scores, labels)
  inputs.check(getmetatable(self).__name, scores, labels)
  local cell, count = cells_of(self, scores:detach(), labels)
  self.cells = self.cells + c.zeros_like(self.cells):scatter_add(1, cell, count)
end

--- Returns the counts: [C, C], with num_labels [C, 2, 2].
function ConfusionMatrix:matrix()
  if self.num_labels then return self.cells:reshape { self.num_labels, 2, 2 } end
  local side = self.num_classes or 2
  return self.cells:reshape { side, side }
end

--- Returns the matrix [C, C], binary [2, 2], with num_labels [C, 2, 2]; normalized ones are f64.
function ConfusionMatrix:compute()
  local matrix = self:matrix()
  if self.normalize == "none" then return matrix end
  matrix = matrix:to "f64"
  local dims = { ["true"] = { -1 }, pred = { -2 }, all = { -2, -1 } }
  local sums = matrix:sum(dims[self.normalize], { keepdim = true })
  return sums:eq(0):where(c.zeros_like(matrix), matrix / sums)
end

-- What plot draws of it: a heat map, that of labels with two rows each.
function ConfusionMatrix:_chart(matrix)
  local names = { kind = "heatmap", x_label = "predicted", y_label = "true" }
  if not self.num_labels then return matrix, names end
  names.row_labels = {}
  for i = 1, self.num_labels do
    names.row_labels[2 * i - 1] = ("label %d: 0"):format(i - 1)
    names.row_labels[2 * i] = ("label %d: 1"):format(i - 1)
  end
  return matrix:reshape { -1, 2 }, names
end

return ConfusionMatrix
