--- stdlib/metrics/MinMaxMetric.lua: a metric with the least and the greatest value that it had.
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
-- Each value that is computed counts: those of epochs that a Trainer logs, and of batches where
-- metric(...) computes them. A reset begins the metric anew, and keeps the two.
-- `self:log_dict(metric)` logs `raw`, `min` and `max`; a MetricCollection of it with a prefix puts
-- one before these names.
local Wrapper = require "ltrain.metrics.wrapper"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local schema = require "ltrain.core.schema"

local MinMaxMetric = Wrapper:extend("MinMaxMetric")

MinMaxMetric.__arguments = "base_metric"

-- One of the three values: what a loop logs.
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

--- Its value, of that of the metric, which counts.
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

--- Returns a table of `raw`, the metric's value, and `min` and `max`, of all that were computed.
function MinMaxMetric:compute() return self:shown(self.metric:compute { sync = false }) end

-- What several parts hold of the metric; counts what they have counted.
local function parts_of(self, parts)
  local states = {}
  for i, part in ipairs(parts) do
    states[i] = part.metric
    widen(self, part.min_val, part.max_val)
  end
  return states
end

--- Returns the value for several parts, which counts.
function MinMaxMetric:figure_of(parts, who, ranks)
  return self:shown(self.metric:figure_of(parts_of(self, parts), who, ranks))
end

local function held(self, states)
  return { metric = states, min_val = self.min_val, max_val = self.max_val }
end

--- Returns what several parts hold.
function MinMaxMetric:joined(parts, who, ranks)
  return held(self, self.metric:joined(parts_of(self, parts), who, ranks))
end

--- The states of the last batch.
function MinMaxMetric:batch_states()
  local states = self.metric:batch_states()
  return states and held(self, states)
end

--- What it holds, for checkpoints.
function MinMaxMetric:state_dict() return held(self, self.metric:state_dict()) end

--- Restores that.
function MinMaxMetric:load_state_dict(saved)
  schema.check(saved, { metric = "table", min_val = "number", max_val = "number" }, "MinMaxMetric")
  self.metric:load_state_dict(saved.metric)
  self.min_val, self.max_val = saved.min_val, saved.max_val
end

--- Merges another one into this one.
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
