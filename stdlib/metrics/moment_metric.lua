--- stdlib/metrics/moment_metric.lua: the base class of metrics computed from means, variances and
-- covariances of predictions and targets.
--
-- Sums of products of deviations are merged by the parallel algorithm of Chan, Golub and LeVeque
-- (1979), which avoids cancellation where means are large. N rows, K outputs; x predictions, y
-- targets.
local Metric = require "ltrain.metrics.Metric"
local Pointwise = require "ltrain.metrics.elementwise_error"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local inputs = require "ltrain.metrics.classification_inputs"

local Moments = Metric:extend("Moments")

--- Rows of options.
Moments.rows = {
  num_outputs = { type = "integer", default = 1, min = 1,
    doc = "number of columns of predictions and targets [N, K]" },
  multioutput = { type = "string", default = "uniform_average",
    choices = { "uniform_average", "raw_values", "variance_weighted" },
    doc = "over outputs: the mean, a tensor [K], or the mean weighted by the targets' variances" },
}

Moments.options = { num_outputs = Moments.rows.num_outputs }

local STATES <const> = { "mean_x", "mean_y", "xx", "yy", "xy" }

function Moments:init(options)
  local o = config.check(options, self.options, "metrics." .. getmetatable(self).__name)
  for name, value in next, o do self[name] = value end
  self:add_state("count", 0)
  for _, name in ipairs(STATES) do
    self:add_state(name, c.zeros({ o.num_outputs }, { dtype = "f64" }))
  end
end

-- Merges a part, a table of the same fields, into the states.
local function join(self, part)
  local n = self.count + part.count
  if part.count == 0 then return end
  local to_x, to_y = part.mean_x - self.mean_x, part.mean_y - self.mean_y
  local share = part.count / n
  local weight = self.count * share
  self.xx = self.xx + part.xx + to_x * to_x * weight
  self.yy = self.yy + part.yy + to_y * to_y * weight
  self.xy = self.xy + part.xy + to_x * to_y * weight
  self.mean_x, self.mean_y = self.mean_x + to_x * share, self.mean_y + to_y * share
  self.count = n
end

--- Updates the metric with predictions and targets of one shape: [N], with num_outputs = K [N, K].
function Moments:update(predictions, targets)
  local x, y = Pointwise.read(self, predictions, targets, self.num_outputs)
  if x.shape[1] == 0 then return end
  local mean_x, mean_y = x:mean(1), y:mean(1)
  x, y = x - mean_x, y - mean_y
  join(self, { count = x.shape[1], mean_x = mean_x, mean_y = mean_y,
    xx = (x * x):sum(1), yy = (y * y):sum(1), xy = (x * y):sum(1) })
end

--- Metrics with the same key have the same states: a MetricCollection updates them once.
function Moments:counts_key() return ("Moments %d"):format(self.num_outputs) end

--- Merges the states of another metric of the same class into this one.
function Moments:merge(other) join(self, other) end

--- Sums of squares, by outputs: of the errors, of the errors from their mean, of the targets from
--- theirs.
function Moments:squares()
  local bias = self.mean_x - self.mean_y
  local spread = (self.xx + self.yy - self.xy * 2):clamp { min = 0 }
  return spread + bias * bias * self.count, spread, self.yy
end

--- Returns 1 - error / variance for each output: 1 where both are 0, 0 where only the variance is.
function Moments.explained(error, variance)
  local constant = variance:eq(0)
  local value = constant:where(error:eq(0):to "f64", 1 - error / variance)
  return value
end

--- Reduces the values of the outputs by `multioutput`.
function Moments:over_outputs(each)
  if self.multioutput == "raw_values" then return each end
  if self.multioutput == "variance_weighted" then
    return (each * (self.yy / self.yy:sum())):sum():item()
  end
  return each:mean():item()
end

--- Returns a number for one output, a tensor [K] for several.
function Moments:number_or_all(each)
  return self.num_outputs == 1 and each:item() or each
end

--- Whether there are fewer than two samples, which is reported once.
function Moments:too_few()
  return self.count < 2 and inputs.nothing(self, "there were fewer than two samples") or nil
end

return Moments
