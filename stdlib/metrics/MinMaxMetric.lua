--- stdlib/metrics/MinMaxMetric.lua: a metric with the minimum and maximum of its values so far.
--
--   local lt = require "ltrain"
--   local metric = lt.metrics.MinMaxMetric(lt.metrics.Mean())
--   for _, value in ipairs{4, 2, 9} do
--     metric:update(value)
--     metric:compute()
--     metric:reset()
--   end
--   print(metric.min_val, metric.max_val)
--   -- prints: 2.0	9.0
--
-- Each computed value counts: those of epochs that a Trainer logs, and of batches where metric(...)
-- computes them. A reset resets the metric, not the minimum and maximum.
-- `self:log_dict(metric)` logs `raw`, `min` and `max`; a MetricCollection with a prefix
-- prefixes these names.
local Wrapper = require "ltrain.metrics.metric_wrapper"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local schema = require "ltrain.core.schema"

local MinMaxMetric = Wrapper:extend("MinMaxMetric")

MinMaxMetric.__arguments = "base_metric"

-- One of the three values, as a Trainer's loop logs it.
local OfField = Wrapper:extend("OfField")

function OfField:init(metric, field)
  Wrapper.init(self, metric, "MinMaxMetric")
  self.field = field
end

function OfField:shown(values) return values[self.field] end

--- MinMaxMetric(Accuracy())
function MinMaxMetric:init(metric)
  Wrapper.init(self, metric, "MinMaxMetric")
  self.min_val, self.max_val = math.huge, -math.huge
  self._parts = {}
end

local function widen(self, least, most)
  if least < self.min_val then self.min_val = least end
  if most > self.max_val then self.max_val = most end
end

--- Returns the wrapper's value for a value of the metric, and updates the minimum and maximum.
function MinMaxMetric:shown(value)
  local number = value
  if c.is_tensor(value) and value:numel() == 1 then number = value:item() end
  if type(number) ~= "number" then
    errors.blame("metrics.MinMaxMetric: %s must compute a number: got %s",
      getmetatable(self.metric).__name, errors.show(value))
  end
  widen(self, number, number)
  return { raw = number, min = self.min_val, max = self.max_val }
end

--- Returns a table of `raw`, the metric's value, and `min` and `max` over all computed values.
function MinMaxMetric:compute() return self:shown(self.metric:compute { sync = false }) end

-- The merged states of several parts of the metric, with their minimum and maximum.
local function parts_of(self, parts)
  local states = {}
  for i, part in ipairs(parts) do
    states[i] = part.metric
    widen(self, part.min_val, part.max_val)
  end
  return states
end

--- Returns the value for several parts, and updates the minimum and maximum.
function MinMaxMetric:figure_of(parts, who, ranks)
  return self:shown(self.metric:figure_of(parts_of(self, parts), who, ranks))
end

local function element(self, states)
  return { metric = states, min_val = self.min_val, max_val = self.max_val }
end

--- Returns the merged states of several parts.
function MinMaxMetric:joined(parts, who, ranks)
  return element(self, self.metric:joined(parts_of(self, parts), who, ranks))
end

--- The states of the last batch.
function MinMaxMetric:batch_states()
  local states = self.metric:batch_states()
  return states and element(self, states)
end

--- Returns the states, for checkpoints.
function MinMaxMetric:state_dict() return element(self, self.metric:state_dict()) end

--- Restores the states.
function MinMaxMetric:load_state_dict(saved)
  schema.check(saved, { metric = "table", min_val = "number", max_val = "number" }, "MinMaxMetric")
  self.metric:load_state_dict(saved.metric)
  self.min_val, self.max_val = saved.min_val, saved.max_val
end

--- Merges another metric into this one.
function MinMaxMetric:merge(other)
  if getmetatable(other) ~= getmetatable(self) then
    errors.blame("merge: a MinMaxMetric is needed: got %s", errors.show(other))
  end
  self.metric:merge(other.metric)
  widen(self, other.min_val, other.max_val)
end

--- The metrics that `log_dict` logs, by name.
function MinMaxMetric:named_metrics()
  for _, field in ipairs { "raw", "min", "max" } do
    self._parts[field] = self._parts[field] or OfField(self, field)
    self._parts[field].batch_value = self.batch_value and self.batch_value[field]
  end
  return { raw = self._parts.raw, min = self._parts.min, max = self._parts.max }
end

return MinMaxMetric
