--- stdlib/metrics/Max.lua: the largest value.
local Aggregation = require "ltrain.metrics.aggregation_metric"
local deferred_sums = require "ltrain.metrics.deferred_sums"

local Max = Aggregation:extend("Max")

--- Max()
function Max:init() self:add_state("value", -math.huge, { reduce = "max" }) end

--- Adds the values of an update.
function Max:take(value)
  deferred_sums.add(self, "value", type(value) == "number" and value or value:amax())
end

--- Returns the maximum; -inf without values.
function Max:compute() return self.value end

return Max
