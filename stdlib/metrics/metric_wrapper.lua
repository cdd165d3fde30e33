--- stdlib/metrics/metric_wrapper.lua: the base class of metrics that wrap another metric and change
--- its value.
--
-- It has no states of its own and delegates to the wrapped metric; `shown(value)` converts the
-- value.
local Metric = require "ltrain.metrics.Metric"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local Wrapper = Metric:extend("Wrapper")

--- Wraps the metric `metric`, for the class `who`.
function Wrapper:init(metric, who)
  if not class.is_a(metric, Metric) then
    errors.blame("metrics.%s: the first argument must be a metric: got %s", who,
      errors.show(metric))
  end
  self.metric, self.higher_is_better = metric, metric.higher_is_better
end

function Wrapper:update(...) self.metric:update(...) end

function Wrapper:compute() return self:shown(self.metric:compute { sync = false }) end

function Wrapper:figure_of(parts, who, ranks)
  return self:shown(self.metric:figure_of(parts, who, ranks))
end

function Wrapper:__call(...)
  self.batch_value = self:shown(self.metric(...))
  return self.batch_value
end

function Wrapper:states() return self.metric:states() end
function Wrapper:state_dict() return self.metric:state_dict() end
function Wrapper:load_state_dict(saved) self.metric:load_state_dict(saved) end
function Wrapper:batch_states() return self.metric:batch_states() end
function Wrapper:joined(parts, who, ranks) return self.metric:joined(parts, who, ranks) end
function Wrapper:merge(other) self.metric:merge(other.metric) end

function Wrapper:reset()
  self.metric:reset()
  self.batch_value = nil
end

function Wrapper:to(device)
  self.metric:to(device)
  self._device = device
  return self
end

return Wrapper
