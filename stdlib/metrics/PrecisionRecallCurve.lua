--- stdlib/metrics/PrecisionRecallCurve.lua: precision over recall, for all thresholds.
--
-- P points.
local Curve = require "ltrain.metrics.curve_metric"
local c = require "ltrain.c"
local inputs = require "ltrain.metrics.classification_inputs"

local PrecisionRecallCurve = Curve:extend("PrecisionRecallCurve")

PrecisionRecallCurve.__arguments = "| task thresholds num_classes num_labels ignore_index"

--- PrecisionRecallCurve{thresholds = 200}
function PrecisionRecallCurve:init(options) Curve.init(self, options) end

--- Returns precision and recall at ascending thresholds of a column, both [P].
function PrecisionRecallCurve.values_of(points)
  local right, wrong = points.right:flip { 1 }:to "f64", points.wrong:flip { 1 }:to "f64"
  return right / (right + wrong), right / points.positives
end

--- Returns precisions and recalls [P + 1], and ascending thresholds [P]; with num_classes or
--- num_labels three lists of them. The last precision is 1, the last recall 0. Without positives
--- recall is 1, which is reported once; precision above all scores is nan.
function PrecisionRecallCurve:compute()
  return self:results(function(points)
    local precision, recall = self.values_of(points)
    if points.positives == 0 then
      inputs.warn(self, "there are no positive samples: recall is 1 everywhere")
      recall = c.ones_like(recall)
    end
    local one = c.ones({ 1 }, { dtype = "f64", device = recall.device })
    return c.cat({ precision, one }, 1), c.cat({ recall, one - 1 }, 1), points.thresholds:flip { 1 }
  end)
end

-- The chart that plot draws.
function PrecisionRecallCurve:_chart(precision, recall, _)
  local values, x = self.lines(recall, precision)
  return values, { x = x, x_label = "recall", y_label = "precision" }
end

return PrecisionRecallCurve
