--- stdlib/metrics/elementwise_error.lua: the base class of regression metrics that average the
-- errors of single predictions.
--
-- A subclass defines the error of each element (`terms`), with a divisor if that is not the number
-- of elements, and the function of the quotient (`finish`). Sums are in f64. N rows, K outputs.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local inputs = require "ltrain.metrics.classification_inputs"

local Pointwise = Metric:extend("Pointwise")

--- Rows of options for metrics that can have a value for each output.
Pointwise.rows = {
  num_outputs = { type = "integer", default = 1, min = 1,
    doc = "1: one value for all elements; K: one for each column of [N, K]" },
}

Pointwise.options = {}

function Pointwise:init(options)
  local o = config.check(options, self.options, "metrics." .. getmetatable(self).__name)
  for name, value in next, o do self[name] = value end
  local size = { o.num_outputs or 1 }
  self:add_state("total", c.zeros(size, { dtype = "f64" }))
  self:add_state("weight", c.zeros(size, { dtype = "f64" }))
end

--- Raises unless predictions and targets are tensors of one shape. Returns them as [N, K], in f64.
function Pointwise.read(metric, predictions, targets, outputs)
  local who = getmetatable(metric).__name
  if not c.is_tensor(predictions) or not c.is_tensor(targets) then
    errors.blame("metrics.%s: update needs predictions and targets: got %s and %s", who,
      errors.show(predictions), errors.show(targets))
  elseif not inputs.same_shape(predictions, targets) then
    errors.blame("metrics.%s: shapes do not fit: predictions %s, targets %s; expected the same",
      who, errors.show_shape(predictions), errors.show_shape(targets))
  elseif outputs > 1 and (predictions.ndim ~= 2 or predictions.shape[2] ~= outputs) then
    errors.blame("metrics.%s: num_outputs = %d: got predictions %s; expected [N, %d]", who,
      outputs, errors.show_shape(predictions), outputs)
  end
  local size = { -1, outputs }
  if predictions:numel() == 0 then size[1] = 0 end
  return predictions:detach():reshape(size):to "f64", targets:detach():reshape(size):to "f64"
end

--- Updates the metric with predictions and targets of one shape.
function Pointwise:update(predictions, targets)
  local x, y = self.read(self, predictions, targets, self.num_outputs or 1)
  local terms, weights = self:terms(x, y)
  self.total = self.total + terms:sum(1)
  self.weight = self.weight + (weights and weights:sum(1) or x.shape[1])
end

--- Returns the value for the sum of terms and their weight: the quotient.
function Pointwise:finish(total, weight) -- luacheck: no self
  return total / weight
end

--- Returns the value, with num_outputs = K a tensor [K]; nan without samples, which is reported
--- once.
function Pointwise:compute()
  if self.weight:sum():item() == 0 then inputs.nothing(self) end
  local value = self:finish(self.total, self.weight)
  return value:numel() == 1 and value:item() or value
end

return Pointwise
