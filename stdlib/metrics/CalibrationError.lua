--- stdlib/metrics/CalibrationError.lua: the calibration error: the difference between the
-- confidence of predictions and their accuracy.
--
-- C. Guo and others, On Calibration of Modern Neural Networks, 2017.
--
-- Predictions are grouped into bins of equal width by confidence: the probability of label 1, or
-- that of the predicted class. The error is the mean over bins, weighted by their counts, of
-- |mean confidence - accuracy| (l1, the expected calibration error), the root of the mean of its
-- square (l2), or the maximum (max). N rows, C classes, B bins.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"

local CalibrationError = Metric:extend("CalibrationError")

CalibrationError.__arguments = "| task n_bins norm num_classes ignore_index"

CalibrationError.higher_is_better = false

CalibrationError.options = {
  task = inputs.task,
  num_classes = { type = "integer", min = 2, doc = "number of classes; binary without it" },
  n_bins = { type = "integer", default = 15, min = 1, doc = "number of bins" },
  norm = { type = "string", default = "l1", choices = { "l1", "l2", "max" },
    doc = "how the errors of the bins are reduced" },
  from_logits = { type = "boolean", default = false,
    doc = "scores are logits: apply softmax (num_classes) or sigmoid" },
  ignore_index = { type = "integer", doc = "elements with this label are ignored" },
}

--- CalibrationError{num_classes = 10, n_bins = 15, norm = "l1"}
function CalibrationError:init(options)
  local o = config.check(options, self.options, "metrics.CalibrationError")
  inputs.check_task("CalibrationError", o)
  for name, value in next, o do self[name] = value end
  -- A confidence of exactly 1 has a bin of its own, as in torchmetrics.
  self:add_state("count", c.zeros({ o.n_bins + 1 }, { dtype = "i64" }))
  self:add_state("right", c.zeros({ o.n_bins + 1 }, { dtype = "i64" }))
  self:add_state("confidence", c.zeros({ o.n_bins + 1 }, { dtype = "f64" }))
end

-- Confidences, and whether the predictions are correct, both [M].
local function confidences(self, scores, labels)
  if not self.num_classes then
    if not inputs.same_shape(scores, labels) then
      errors.blame("metrics.CalibrationError: shapes do not fit: scores %s, labels %s; expected "
        .. "the same", errors.show_shape(scores), errors.show_shape(labels))
    end
    scores = self.from_logits and scores:sigmoid() or scores
    return scores:reshape { -1 }, labels:ne(0):reshape { -1 }
  end
  inputs.check_classes("CalibrationError", scores, labels)
  if scores.shape[2] ~= self.num_classes then
    errors.blame("metrics.CalibrationError: num_classes = %d: got scores %s", self.num_classes,
      errors.show_shape(scores))
  end
  scores = self.from_logits and scores:softmax(2) or scores
  local best, said = scores:max(2)
  return best:reshape { -1 }, said:eq(labels):reshape { -1 }
end

--- Updates the metric with a batch: probabilities (or logits) and labels of the same shape;
--- num_classes: [N, C, ...] and ids [N, ...].
function CalibrationError:update(scores, labels)
  inputs.check("CalibrationError", scores, labels)
  local confidence, right = confidences(self, scores:detach(), labels)
  if self.ignore_index then
    local counts = labels:reshape { -1 }:ne(self.ignore_index)
    confidence, right = confidence:masked_select(counts), right:masked_select(counts)
  end
  if confidence:numel() == 0 then return end
  inputs.check_probabilities(self, confidence)
  local device, n = confidence.device, self.n_bins
  confidence = confidence:to "f32"
  local edges = c.linspace(0, 1, n + 1, { dtype = "f32", device = device })
  local bin = c.bucketize(confidence, edges, { right = true }) - 1
  self.count = self.count + c.zeros_like(self.count):scatter_add(1, bin, c.ones_like(bin))
  self.right = self.right + c.zeros_like(self.right):scatter_add(1, bin, right:to "i64")
  self.confidence = self.confidence
    + c.zeros_like(self.confidence):scatter_add(1, bin, confidence:to "f64")
end

--- Returns the error; nan without samples, which is reported once.
function CalibrationError:compute()
  local all = self.count:sum():item()
  if all == 0 then return inputs.nothing(self) end
  local count = self.count:clamp { min = 1 }:to "f64"
  local gap = (self.right:to "f64" / count - self.confidence / count):abs()
  if self.norm == "max" then return gap:amax():item() end
  local share = self.count:to "f64" / all
  if self.norm == "l1" then return (gap * share):sum():item() end
  return math.sqrt((gap * gap * share):sum():item())
end

return CalibrationError
