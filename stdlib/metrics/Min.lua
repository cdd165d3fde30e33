--- stdlib/metrics/Min.lua: the smallest value.
local Aggregation = require "ltrain.metrics.aggregation_metric"
local deferred_sums = require "ltrain.metrics.deferred_sums"

local Min = Aggregation:extend("Min")

--- Min()
function Min:init() self:add_state("value", math.huge, { reduce = "min" }) end

--- Adds the values of an update.
function Min:take(value)
  deferred_sums.add(self, "value", type(value) == "number" and value or value:amin())
end

--- Returns the minimum; inf without values.
function Min:compute() return self.value end

return Min
