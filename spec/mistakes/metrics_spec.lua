-- spec/mistakes/metrics_spec.lua: arguments of metrics, shapes and labels.
local mistakes = require "spec.mistakes.mistakes"

mistakes("metrics", {
  { "Acuracy", [[
local a = lt.metrics.Acuracy() --!]],
    "metrics: there is no 'Acuracy'; did you mean 'Accuracy'?" },
  { "predictions and targets of different lengths", [[
local a = lt.metrics.MeanSquaredError()
a:update(lt.ones(3), lt.ones(4)) --!]],
    "metrics.MeanSquaredError: shapes do not fit: predictions [3], targets [4]; expected the "
    .. "same" },
  { "task without its number, as in torchmetrics", [[
local acc = lt.metrics.Accuracy("multiclass") --!]],
    "metrics.Accuracy: task = 'multiclass' needs num_classes" },
  { "targets and predictions swapped", [[
local acc = lt.metrics.Accuracy{num_classes = 3, average = "macro"}
acc:update(lt.tensor({0, 1, 2}), lt.randn(3, 3)) --!]],
    "metrics.Accuracy: labels must be integers: got f32" },
  { "a label out of range", [[
local acc = lt.metrics.Accuracy{num_classes = 3, average = "macro"}
acc:update(lt.randn(3, 3), lt.tensor({1, 2, 3})) --!]],
    "metrics.Accuracy: labels are ids 0..2 (num_classes = 3): got 3" },
  { "update with a dot", [[
local acc = lt.metrics.MeanSquaredError()
acc.update(lt.ones(3), lt.ones(3)) --!]],
    "tensor: no field or method 'read': self is a tensor here: was the method called with '.' "
    .. "for ':'?" },
  { "update without targets", [[
local acc = lt.metrics.MeanSquaredError()
acc:update(lt.ones(3)) --!]],
    "metrics.MeanSquaredError: update needs predictions and targets: got a tensor [3] and nil" },
  { "floating labels", [[
local acc = lt.metrics.Accuracy{num_classes = 3, average = "macro"}
acc:update(lt.randn(3, 3), lt.ones(3)) --!]],
    "metrics.Accuracy: labels must be integers: got f32" },
  { "a tensor of logits for a binary metric", [[
local auc = lt.metrics.AUROC()
auc:update(lt.randn(4, 2), lt.tensor({0, 1, 0, 1})) --!]],
    "metrics.AUROC: shapes do not fit: scores [4, 2], labels [4]; expected the same" },
  { "average = 'mean'", [[
local f1 = lt.metrics.F1{num_classes = 3, average = "mean"} --!]],
    "metrics.F1: average must be 'macro', 'micro', 'weighted' or 'none': got 'mean'" },
  { "a metric in a collection that is none", [[
local all = lt.metrics.MetricCollection{acc = lt.metrics.Accuracy} --!]],
    "metrics.MetricCollection: 'acc' must be a metric: got class Accuracy" },
  { "num_classes without average", [[
local acc = lt.metrics.Accuracy{num_classes = 3} --!]],
    "metrics.Accuracy: with num_classes or num_labels say how to average: average = 'macro', "
    .. "'micro', 'weighted' or 'none'" },
})
