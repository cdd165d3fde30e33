--- stdlib/metrics/AUROC.lua: the area under the ROC curve.
--
-- It is the probability that a positive sample scores higher than a negative one. By default it is
-- exact: all scores are kept until the end of the epoch, and the area is computed from counts, so
-- that it has the same bits on any number of ranks. With `thresholds = n` scores in [0, 1] are
-- counted between n thresholds, which needs little memory. That area differs from the exact one by
-- at most half the fraction of pairs (positive, negative) whose scores are between the same two
-- thresholds. The definitions are those of torchmetrics; but without positive, or without negative,
-- samples the area is nan, not 0, and scores of exactly 1 are counted as any other (torchmetrics
-- leaves them out: scores that are all 1 give 0, here 0.5 as without thresholds). N rows, C classes
-- or labels, P points.
--
-- J. Hanley, B. McNeil, The Meaning and Use of the Area under a ROC Curve, 1982.
local Curve = require "ltrain.metrics.curve_metric"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local AUROC = Curve:extend("AUROC")

AUROC.__arguments = "| task thresholds num_classes num_labels average max_fpr ignore_index"

AUROC.higher_is_better = true

AUROC.options = Curve.options_with {
  average = Curve.of_area.average,
  max_fpr = { type = "number", above = 0, max = 1,
    doc = "binary: the area up to this false positive rate, scaled so that chance gives 0.5" },
}

--- AUROC{thresholds = 200}
function AUROC:init(options)
  Curve.init(self, options)
  if self.max_fpr and (self.num_classes or self.num_labels) then
    errors.blame("metrics.AUROC: max_fpr is for two classes")
  end
end

-- Running counts at all points, from (0, 0).
local function from_zero(counts)
  return c.cat({ c.zeros({ 1 }, { dtype = "i64", device = counts.device }), counts }, 1)
end

-- The area up to a false positive rate, scaled as McClish (1989) does.
local function partial(right, wrong, points, max_fpr)
  local limit, area = max_fpr * points.negatives, 0.0
  local x, y = wrong:tolist(), right:tolist()
  for i = 2, #x do
    if x[i - 1] >= limit then break end
    local x2, y2 = x[i], y[i]
    if x2 > limit then
      y2 = y[i - 1] + (y2 - y[i - 1]) * (limit - x[i - 1]) / (x2 - x[i - 1])
      x2 = limit
    end
    area = area + (x2 - x[i - 1]) * (y2 + y[i - 1]) / 2
  end
  area = area / (points.positives * points.negatives)
  local least = max_fpr * max_fpr / 2
  return 0.5 * (1 + (area - least) / (max_fpr - least))
end

-- The area below the curve of running counts of positives and negatives, from (0, 0): exact in
-- integers until the last division. Nil if undefined.
local function area_of(points, max_fpr)
  if points.positives == 0 or points.negatives == 0 then return nil end
  local right, wrong = from_zero(points.right), from_zero(points.wrong)
  local n = points.right.shape[1]
  -- Samples below the lowest threshold are the last point.
  if right[n + 1]:item() < points.positives or wrong[n + 1]:item() < points.negatives then
    local o = { dtype = "i64", device = right.device }
    right = c.cat({ right, c.full({ 1 }, points.positives, o) }, 1)
    wrong = c.cat({ wrong, c.full({ 1 }, points.negatives, o) }, 1)
    n = n + 1
  end
  if max_fpr and max_fpr < 1 then return partial(right, wrong, points, max_fpr) end
  local widths = wrong:narrow(1, 2, n) - wrong:narrow(1, 1, n)
  local heights = right:narrow(1, 2, n) + right:narrow(1, 1, n)
  return (widths * heights):sum():item() / (2.0 * points.positives * points.negatives)
end

AUROC.nothing_to_rank = "there are no samples, or all labels are equal"

--- Returns the area; nan without samples, or if all labels are equal, which is reported once. Such
--- classes are excluded from means.
function AUROC:compute()
  return self:average_of(function(points) return area_of(points, self.max_fpr) end,
    "no row has this label, or all have")
end

return AUROC
