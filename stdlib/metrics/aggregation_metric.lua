--- stdlib/metrics/aggregation_metric.lua: the base class of Mean, Sum, Min, Max and Cat: metrics of
-- plain values.
local Metric = require "ltrain.metrics.Metric"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local Aggregation = Metric:extend("Aggregation")

-- The values of an update as a tensor of f64, or the number itself.
local function read(self, value)
  if type(value) == "number" then return value end
  if not c.is_tensor(value) then
    errors.blame("metrics.%s: update needs a number or a tensor: got %s",
      getmetatable(self).__name, errors.show(value))
  end
  return value:detach():to "f64"
end

--- Updates the metric with a number, or with all elements of a tensor of any shape.
function Aggregation:update(value)
  value = read(self, value)
  if c.is_tensor(value) and value:numel() == 0 then return end
  self:take(value)
end

--- Returns the value over all updates.
function Aggregation:compute() return self.value end

return Aggregation
