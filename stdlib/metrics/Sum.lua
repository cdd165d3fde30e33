--- stdlib/metrics/Sum.lua: the sum of values.
local Aggregation = require "ltrain.metrics.aggregation_metric"
local deferred_sums = require "ltrain.metrics.deferred_sums"

local Sum = Aggregation:extend("Sum")

--- Sum()
function Sum:init() self:add_state("value", 0.0, { reduce = "sum" }) end

--- Adds the values of an update.
function Sum:take(value)
  deferred_sums.add(self, "value", type(value) == "number" and value or value:sum())
end

--- Returns the sum; 0 without values.
function Sum:compute() return self.value end

return Sum
