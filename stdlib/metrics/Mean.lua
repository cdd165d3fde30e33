--- stdlib/metrics/Mean.lua: the weighted mean of values.
local Metric = require "ltrain.metrics.Metric"
local deferred_sums = require "ltrain.metrics.deferred_sums"
local errors = require "ltrain.core.errors"

local Mean = Metric:extend("Mean")

function Mean:init()
  self:add_state("total", 0.0)
  self:add_state("count", 0.0)
end

-- Sum and number of the values, each multiplied by its weight, in doubles.
local function sums(value, weight)
  if type(value) == "number" then return value * weight, weight end
  if type(value) ~= "userdata" then
    errors.blame("metrics.Mean: update needs a number or a tensor: got %s", errors.show(value))
  end
  value = value:detach():to("f64")
  if type(weight) == "userdata" then
    weight = weight:detach():to("f64")
    local weighted = value * weight
    -- A weight may broadcast: each value counts with its own.
    return weighted:sum(), weight:expand_as(weighted):sum()
  end
  return value:sum() * weight, value:numel() * weight
end

--- Updates the metric with a number, or with all elements of a tensor of any shape; the weight is a
--- number or a tensor that broadcasts to x.
function Mean:update(value, weight)
  local total, count = sums(value, weight or 1.0)
  deferred_sums.add(self, "total", total)
  deferred_sums.add(self, "count", count)
end

--- Returns the mean; nan without values.
function Mean:compute()
  return self.total / self.count
end

return Mean
