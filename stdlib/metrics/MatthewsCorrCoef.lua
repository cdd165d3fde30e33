--- stdlib/metrics/MatthewsCorrCoef.lua: the Matthews correlation coefficient of predicted and
-- true classes, from -1 to 1.
--
-- B. Matthews, 1975; for several classes J. Gorodkin, 2004.
--
-- With num_labels it is computed over all labels together. If all samples, or all predictions, are
-- of one class it is 0, but 1 if all are correct; torchmetrics gives some of these binary cases
-- another value near 0.
local ConfusionMatrix = require "ltrain.metrics.ConfusionMatrix"
local inputs = require "ltrain.metrics.classification_inputs"
local predicted_labels = require "ltrain.metrics.predicted_labels"

local MatthewsCorrCoef = ConfusionMatrix:extend("MatthewsCorrCoef")

MatthewsCorrCoef.__arguments = "| task threshold num_classes num_labels ignore_index"

MatthewsCorrCoef.higher_is_better = true

MatthewsCorrCoef.options = predicted_labels.options

--- MatthewsCorrCoef{num_classes = 5}
function MatthewsCorrCoef:init(options) ConfusionMatrix.init(self, options) end

--- Returns the coefficient; nan without samples, which is reported once.
function MatthewsCorrCoef:compute()
  local matrix = self:matrix():to "f64"
  if self.num_labels then matrix = matrix:sum(1) end
  local all = matrix:sum():item()
  if all == 0 then return inputs.nothing(self) end
  local truth, said = matrix:sum(2), matrix:sum(1)
  local right = matrix:diagonal():sum():item()
  if right == all then return 1.0 end
  local square = all * all
  local of_truth = square - (truth * truth):sum():item()
  local of_said = square - (said * said):sum():item()
  if of_truth == 0 or of_said == 0 then
    return matrix.shape[1] == 2 and right == 0 and -1.0 or 0.0
  end
  return (right * all - (truth * said):sum():item()) / math.sqrt(of_truth * of_said)
end

return MatthewsCorrCoef
