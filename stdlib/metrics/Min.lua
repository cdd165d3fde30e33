--- stdlib/metrics/Min.lua: the smallest value.
local Aggregation = require "ltrain.metrics.aggregation_metric"
local reductions = require "ltrain.core.reductions"

local Min = Aggregation:extend("Min")

--- Min()
function Min:init() self:add_state("value", math.huge, { reduce = "min" }) end

--- Adds the values of an update.
function Min:take(value)
  local one = type(value) == "number" and value or value:amin():item()
  self.value = reductions.min(self.value, one)
end

--- Returns the minimum; inf without values.
function Min:compute() return self.value end

return Min
