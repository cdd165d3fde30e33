--- stdlib/metrics/CohenKappa.lua: Cohen's kappa: the agreement of predictions and labels beyond
--- chance.
--
-- J. Cohen, A Coefficient of Agreement for Nominal Scales, 1960.
--
-- C classes.
local ConfusionMatrix = require "ltrain.metrics.ConfusionMatrix"
local c = require "ltrain.c"
local inputs = require "ltrain.metrics.classification_inputs"

local CohenKappa = ConfusionMatrix:extend("CohenKappa")

CohenKappa.__arguments = "| task threshold num_classes weights ignore_index"

CohenKappa.higher_is_better = true

local shared <const> = ConfusionMatrix.options

CohenKappa.options = {
  num_classes = shared.num_classes, ignore_index = shared.ignore_index,
  threshold = shared.threshold, from_logits = shared.from_logits,
  weights = { type = "string", default = "none", choices = { "none", "linear", "quadratic" },
    doc = "weight errors by the distance of the classes, or its square" },
}

--- CohenKappa{num_classes = 5, weights = "quadratic"}
function CohenKappa:init(options) ConfusionMatrix.init(self, options) end

-- The weight of each cell [C, C] as an error.
local function weights_of(self, matrix)
  local ids = c.arange(matrix.shape[1], { dtype = "f64", device = matrix.device })
  local distance = (ids:unsqueeze(2) - ids:unsqueeze(1)):abs()
  if self.weights == "linear" then return distance end
  return self.weights == "quadratic" and distance:square() or distance:gt(0):to "f64"
end

--- Returns kappa; nan without samples, or if all labels and predictions are one class.
function CohenKappa:compute()
  local matrix = self:matrix():to "f64"
  local all = matrix:sum():item()
  if all == 0 then return inputs.nothing(self) end
  local expected = matrix:sum(2):unsqueeze(2) * matrix:sum(1):unsqueeze(1) / all
  local weights = weights_of(self, matrix)
  local chance = (weights * expected):sum():item()
  if chance == 0 then
    return inputs.nothing(self, "all samples and predictions are of one class")
  end
  return 1 - (weights * matrix):sum():item() / chance
end

return CohenKappa
