--- stdlib/metrics/Max.lua: the largest value.
local Aggregation = require "ltrain.metrics.aggregation_metric"
local reductions = require "ltrain.core.reductions"

local Max = Aggregation:extend("Max")

--- Max()
function Max:init() self:add_state("value", -math.huge, { reduce = "max" }) end

--- Adds the values of an update.
function Max:take(value)
  local one = type(value) == "number" and value or value:amax():item()
  self.value = reductions.max(self.value, one)
end

--- Returns the maximum; -inf without values.
function Max:compute() return self.value end

return Max
