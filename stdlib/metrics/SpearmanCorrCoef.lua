--- stdlib/metrics/SpearmanCorrCoef.lua: Spearman's rank correlation of predictions and targets.
--
-- C. Spearman, The Proof and Measurement of Association between Two Things, 1904.
--
-- All values are kept until the end of the epoch. Ties have the mean of their ranks.
local Metric = require "ltrain.metrics.Metric"
local Moments = require "ltrain.metrics.moment_metric"
local PearsonCorrCoef = require "ltrain.metrics.PearsonCorrCoef"
local Pointwise = require "ltrain.metrics.elementwise_error"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local inputs = require "ltrain.metrics.classification_inputs"

local SpearmanCorrCoef = Metric:extend("SpearmanCorrCoef")

SpearmanCorrCoef.__arguments = "| num_outputs"

SpearmanCorrCoef.higher_is_better = true

SpearmanCorrCoef.options = { num_outputs = Moments.rows.num_outputs }

--- SpearmanCorrCoef()
function SpearmanCorrCoef:init(options)
  local o = config.check(options, self.options, "metrics.SpearmanCorrCoef")
  self.num_outputs = o.num_outputs
  self:add_state("predictions", {})
  self:add_state("targets", {})
end

--- Updates the metric with predictions and targets of one shape: [N], with num_outputs = K [N, K].
function SpearmanCorrCoef:update(predictions, targets)
  local x, y = Pointwise.read(self, predictions, targets, self.num_outputs)
  table.insert(self.predictions, x)
  table.insert(self.targets, y)
end

-- The ranks [N] of values [N], from 1.
local function ranks_of(values)
  local n = values.shape[1]
  local sorted, order = values:sort()
  local first = c.ones({ 1 }, { dtype = "bool", device = values.device })
  if n > 1 then
    first = c.cat({ first, sorted:narrow(1, 2, n - 1):ne(sorted:narrow(1, 1, n - 1)) }, 1)
  end
  local group = first:cumsum(1) - 1
  local zero = c.zeros({ n }, { dtype = "f64", device = values.device })
  local places = c.arange(n, { dtype = "f64", device = values.device }) + 1
  local sums = zero:scatter_add(1, group, places)
  local counts = zero:scatter_add(1, group, c.ones_like(places))
  return zero:scatter_add(1, order, (sums / counts):gather(1, group))
end

--- Returns the coefficient, with num_outputs = K a tensor [K]; nan for fewer than two samples,
--- which is reported once, and for constant ones.
function SpearmanCorrCoef:compute()
  if #self.predictions == 0 then return inputs.nothing(self) end
  local x, y = c.cat(self.predictions, 1), c.cat(self.targets, 1)
  local ranked_x, ranked_y = {}, {}
  for k = 1, self.num_outputs do
    ranked_x[k], ranked_y[k] = ranks_of(x:select(2, k)), ranks_of(y:select(2, k))
  end
  local pearson = PearsonCorrCoef { num_outputs = self.num_outputs }
  pearson:update(c.stack(ranked_x, 2), c.stack(ranked_y, 2))
  return pearson:compute { sync = false }
end

return SpearmanCorrCoef
