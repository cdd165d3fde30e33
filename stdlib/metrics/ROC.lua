--- stdlib/metrics/ROC.lua: the ROC curve: true positive rates over false positive rates.
--
-- P points.
local Curve = require "ltrain.metrics.curve_metric"
local c = require "ltrain.c"
local inputs = require "ltrain.metrics.classification_inputs"

local ROC = Curve:extend("ROC")

ROC.__arguments = "| task thresholds num_classes num_labels ignore_index"

--- ROC{thresholds = 200}
function ROC:init(options) Curve.init(self, options) end

local function rates(counts, all)
  return counts:to "f64" / (all > 0 and all or 1)
end

--- Returns false positive rates, true positive rates and thresholds, which fall: three tensors [P],
--- with num_classes or num_labels three lists of them. Exact curves begin at (0, 0) with a
--- threshold of 1. Without negatives (positives) these rates are 0, which is reported once.
function ROC:compute()
  return self:results(function(points)
    if points.positives == 0 or points.negatives == 0 then
      inputs.warn(self, "all labels are equal: a rate is 0 everywhere")
    end
    local fpr = rates(points.wrong, points.negatives)
    local tpr, thresholds = rates(points.right, points.positives), points.thresholds
    if self.thresholds then return fpr, tpr, thresholds end
    local device = fpr.device
    local zero = c.zeros({ 1 }, { dtype = "f64", device = device })
    local one = c.ones({ 1 }, { dtype = thresholds.dtype, device = device })
    return c.cat({ zero, fpr }, 1), c.cat({ zero, tpr }, 1), c.cat({ one, thresholds }, 1)
  end)
end

-- The chart that plot draws.
function ROC:_chart(fpr, tpr, _)
  local values, x = self.lines(fpr, tpr)
  return values, { x = x, x_label = "false positive rate", y_label = "true positive rate" }
end

return ROC
