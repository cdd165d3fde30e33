--- stdlib/metrics/CosineSimilarity.lua: the mean (or sum) of the cosine similarities of rows
-- of predictions and targets.
--
-- N rows, D features.
local Pointwise = require "ltrain.metrics.elementwise_error"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local CosineSimilarity = Pointwise:extend("CosineSimilarity")

CosineSimilarity.__arguments = "| reduction"

CosineSimilarity.higher_is_better = true

CosineSimilarity.options = {
  reduction = { type = "string", default = "sum", choices = { "sum", "mean" },
    doc = "reduction over rows" },
}

--- CosineSimilarity{reduction = "mean"}
function CosineSimilarity:init(options) Pointwise.init(self, options) end

--- Updates the metric with predictions and targets, both [N, D].
function CosineSimilarity:update(predictions, targets)
  local x, y = self.read(self, predictions, targets, 1)
  if predictions.ndim ~= 2 then
    errors.blame("metrics.CosineSimilarity: predictions and targets must be [N, D]: got %s",
      errors.show_shape(predictions))
  end
  x, y = x:reshape(predictions.shape), y:reshape(predictions.shape)
  local lengths = (x:norm { dims = 2 } * y:norm { dims = 2 }):clamp { min = 1e-300 }
  self.total = self.total + ((x * y):sum(2) / lengths):sum()
  self.weight = self.weight + c.full_like(self.weight, x.shape[1])
end

--- Returns the mean or the sum.
function CosineSimilarity:finish(total, weight)
  return self.reduction == "mean" and total / weight or total
end

return CosineSimilarity
