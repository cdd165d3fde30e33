--- stdlib/metrics/Running.lua: a metric over the last updates only.
--
--   local lt = require "ltrain"
--   local recent = lt.metrics.Running(lt.metrics.Mean(), {window = 2})
--   for _, value in ipairs{1, 2, 6} do recent:update(value) end
--   print(recent:compute())
--   -- prints: 4.0
--
-- On several ranks it covers the last updates of each rank.
local Metric = require "ltrain.metrics.Metric"
local Wrapper = require "ltrain.metrics.metric_wrapper"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local schema = require "ltrain.core.schema"

local Running = Metric:extend("Running")

Running.__arguments = "base_metric | window"

Running.options = {
  window = { type = "integer", default = 5, min = 1, doc = "number of updates" },
}

--- Running(Mean(), {window = 100})
function Running:init(metric, options)
  Wrapper.init(self, metric, "Running")
  self.window = config.check(options, self.options, "metrics.Running").window
  self._last = {} -- what the metric holds of each update, the oldest first
end

-- Appends an update.
local function push(self, states)
  table.insert(self._last, states)
  if #self._last > self.window then table.remove(self._last, 1) end
end

--- Updates the metric.
function Running:update(...)
  self.metric:reset()
  self.metric:update(...)
  push(self, self.metric:state_dict())
end

-- The states of the metric before any update.
local function nothing(self)
  self.metric:reset()
  return self.metric:state_dict()
end

--- Returns the metric's value for the last updates.
function Running:compute()
  return self.metric:figure_of(#self._last > 0 and self._last or { nothing(self) })
end

--- recent(...) updates it and returns the value of that batch only.
function Running:__call(...)
  self:update(...)
  self.batch_value = self.metric:figure_of { self._last[#self._last] }
  return self.batch_value
end

--- Returns the states, for checkpoints.
function Running:state_dict()
  return { last = table.move(self._last, 1, #self._last, 1, {}) }
end

--- Restores the states.
function Running:load_state_dict(saved)
  schema.check(saved, { last = "table" }, "Running")
  self._last = table.move(saved.last, 1, #saved.last, 1, {})
end

-- The updates of several parts, in their order.
local function all_of(parts)
  local last = {}
  for _, part in ipairs(parts) do table.move(part.last, 1, #part.last, #last + 1, last) end
  return last
end

--- Returns the value for the last updates of several parts.
function Running:figure_of(parts)
  local last = all_of(parts)
  return self.metric:figure_of(#last > 0 and last or { nothing(self) })
end

--- Returns the merged states of several parts.
function Running:joined(parts) return { last = all_of(parts) } end -- luacheck: no self

--- The states of the last batch.
function Running:batch_states()
  return #self._last > 0 and { last = { self._last[#self._last] } } or nil
end

--- Appends the updates of another metric to those of this one.
function Running:merge(other)
  if getmetatable(other) ~= getmetatable(self) then
    errors.blame("merge: a Running is needed: got %s", errors.show(other))
  end
  for _, states in ipairs(other._last) do push(self, states) end
end

--- Removes all updates.
function Running:reset()
  self.metric:reset()
  self._last, self.batch_value = {}, nil
end

--- Moves the metric to a device; states of updates follow when they are used.
function Running:to(device)
  self.metric:to(device)
  self._device = device
  return self
end

return Running
