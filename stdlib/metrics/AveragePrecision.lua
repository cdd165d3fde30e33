--- stdlib/metrics/AveragePrecision.lua: average precision: the area under the precision-recall
--- curve, as a step function.
--
-- AP = sum over n of (R_n - R_(n-1)) P_n, of precision P and recall R; not interpolated.
local Curve = require "ltrain.metrics.curve_metric"
local PrecisionRecallCurve = require "ltrain.metrics.PrecisionRecallCurve"
local c = require "ltrain.c"

local AveragePrecision = Curve:extend("AveragePrecision")

AveragePrecision.__arguments = "| task thresholds num_classes num_labels average ignore_index"

AveragePrecision.higher_is_better = true

AveragePrecision.options = Curve.of_area

--- AveragePrecision{num_classes = 10, average = "macro"}
function AveragePrecision:init(options) Curve.init(self, options) end

local function area_of(points)
  if points.positives == 0 then return nil end
  local precision, recall = PrecisionRecallCurve.values_of(points)
  local n = recall.shape[1]
  local next_recall = c.zeros({ 1 }, { dtype = "f64", device = recall.device })
  if n > 1 then next_recall = c.cat({ recall:narrow(1, 2, n - 1), next_recall }, 1) end
  local grows = recall - next_recall
  return grows:gt(0):where(grows * precision, c.zeros_like(grows)):sum():item()
end

AveragePrecision.nothing_to_rank = "there are no positive samples"

--- Returns the area; nan without positive samples, which is reported once. Such classes are
--- excluded from means.
function AveragePrecision:compute()
  return self:average_of(area_of, "no row has this label")
end

return AveragePrecision
