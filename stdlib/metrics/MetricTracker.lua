--- stdlib/metrics/MetricTracker.lua: the values of a metric, or a collection, over several steps.
--
--   local lt = require "ltrain"
--   local tracker = lt.metrics.MetricTracker(lt.metrics.Accuracy())
--   for _, said in ipairs{{0, 0}, {0, 1}, {1, 0}} do
--     tracker:increment()
--     tracker:update(lt.tensor(said), lt.tensor{0, 1})
--   end
--   print(tracker:best_metric{return_step = true})
--   -- prints: 1.0	1
--
-- `increment` begins a step, as in on_validation_epoch_start; steps count from 0. What it computes
-- is logged as numbers, in on_validation_epoch_end: `self:log("best", self.tracker:best_metric())`.
-- Checkpoints contain all steps of a tracker that is a field of the module. The tracker owns the
-- metric and stores its states for each step.
local Metric = require "ltrain.metrics.Metric"
local MetricCollection = require "ltrain.metrics.MetricCollection"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collective_hooks = require "ltrain.core.collective_hooks"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local schema = require "ltrain.core.schema"

local MetricTracker = class.extend(nil, "MetricTracker")

MetricTracker.__arguments = "metric | maximize"

local OPTIONS <const> = {
  maximize = { type = "any",
    doc = "true: the greatest value is the best, false: the least; for a collection also a table "
      .. "of these by name; by default `higher_is_better` of the metrics" },
}

local BEST <const> = {
  return_step = { type = "boolean", default = false, doc = "returns the best step too" },
}

-- Raises for an invalid `maximize`.
local function check_maximize(maximize, metric)
  local is_table = type(maximize) == "table" and class.is_a(metric, MetricCollection)
  if type(maximize) ~= "boolean" and not is_table then
    errors.blame("metrics.MetricTracker: maximize must be true or false%s: got %s",
      class.is_a(metric, MetricCollection) and ", or a table of these by name" or "",
      errors.show(maximize))
  end
  for name, value in pairs(is_table and maximize or {}) do
    if type(value) ~= "boolean" then
      errors.blame("metrics.MetricTracker: maximize.%s must be true or false: got %s",
        tostring(name), errors.show(value))
    end
  end
end

-- Whether higher is better for the value `name` (nil: a single metric).
local function is_up(self, name)
  local maximize = self.maximize
  if type(maximize) == "table" then maximize = maximize[name] end
  if maximize ~= nil then return maximize end
  local metric = name and self.metric:metric_of(name) or self.metric
  if metric.higher_is_better ~= nil then return metric.higher_is_better end
  errors.blame("metrics.MetricTracker: %s has no higher_is_better: give maximize = true or false%s",
    getmetatable(metric).__name, name and (" for '%s'"):format(name) or "")
end

--- MetricTracker(Accuracy()); MetricTracker(MetricCollection{acc = Accuracy()},
--- {maximize = {acc = true}})
function MetricTracker:init(metric, options)
  local o = config.check(options, OPTIONS, "metrics.MetricTracker")
  if not class.is_a(metric, Metric) and not class.is_a(metric, MetricCollection) then
    errors.blame("metrics.MetricTracker: the first argument must be a metric or a "
      .. "MetricCollection: got %s", errors.show(metric))
  end
  if o.maximize ~= nil then check_maximize(o.maximize, metric) end
  self.metric, self.maximize, self.n_steps = metric, o.maximize, 0
  self._past, self._computed = {}, {} -- states and values of steps before the last
end

--- Begins a step.
function MetricTracker:increment()
  if self.n_steps > 0 then table.insert(self._past, self.metric:state_dict()) end
  self.metric:reset()
  self.n_steps = self.n_steps + 1
end

local function check_begun(self, method)
  if self.n_steps > 0 then return end
  errors.blame("metrics.MetricTracker: %s: increment() must be called before", method)
end

--- Updates the metric of this step.
function MetricTracker:update(...)
  check_begun(self, "update")
  self.metric:update(...)
end

--- tracker(...) updates it, and returns the value of that batch.
function MetricTracker:__call(...)
  check_begun(self, "call")
  return self.metric(...)
end

--- Returns the value of this step. Options are those of Metric's compute.
function MetricTracker:compute(options)
  config.check(options, Metric.compute_options, "compute")
  check_begun(self, "compute")
  return self.metric:compute(options)
end

-- Several values are a list.
local function one(...)
  if select("#", ...) == 1 then return (...) end
  return { ... }
end

-- The value of step `k`, from 1; those of past steps are cached.
local function value_of(self, k, options)
  if k == self.n_steps then return one(self.metric:compute(options)) end
  local sync = options and options.sync
  if sync == nil then sync = collective_hooks.running() end
  local known = self._computed[k] or {}
  self._computed[k] = known
  if known[sync] == nil then
    local now = self.metric:state_dict()
    local function back() self.metric:load_state_dict(now) end
    local _ <close> = setmetatable({}, { __close = back })
    self.metric:load_state_dict(self._past[k])
    known[sync] = one(self.metric:compute(options))
  end
  return known[sync]
end

-- The values of all steps: a list of them, or lists by name.
local function values_of(self, options)
  local last, list = value_of(self, self.n_steps, options), {}
  for k = 1, self.n_steps - 1 do list[k] = value_of(self, k, options) end
  list[self.n_steps] = last
  if type(last) ~= "table" or #last > 0 then return list end
  local named = {}
  for name in pairs(last) do
    named[name] = {}
    for k, values in ipairs(list) do named[name][k] = values[name] end
  end
  return named, true
end

-- Numbers and tensors of one shape as a tensor; any others stay a list.
local function stacked(list)
  if type(list[1]) == "number" then return c.tensor(list, { dtype = "f64" }) end
  for _, value in ipairs(list) do
    if not c.is_tensor(value) or errors.show_shape(value) ~= errors.show_shape(list[1]) then
      return list
    end
  end
  return c.stack(list)
end

--- Returns the values of all steps, f64 [n_steps], for tensors [n_steps, ...]; for a metric that
--- computes a table, and for a collection, by name. Options are those of Metric's compute.
function MetricTracker:compute_all(options)
  config.check(options, Metric.compute_options, "compute_all")
  check_begun(self, "compute_all")
  local values, is_named = values_of(self, options)
  if not is_named then return stacked(values) end
  for name, list in pairs(values) do values[name] = stacked(list) end
  return values
end

-- The best of a list of numbers, and its step; NaN as in torch.max; nil: no numbers.
local function best_of(list, up)
  local best, step
  for k, value in ipairs(list) do
    if c.is_tensor(value) and value:numel() == 1 then value = value:item() end
    if type(value) ~= "number" then return nil end
    if value ~= value then return value, k - 1 end
    if not best or up and value > best or not up and value < best then best, step = value, k - 1 end
  end
  return best, step
end

--- Returns the best value over all steps, the first of equal ones, and with `return_step` its step,
--- from 0; for a collection tables of both by name, without values that are not numbers.
function MetricTracker:best_metric(options)
  local o = config.check(options, BEST, "best_metric")
  check_begun(self, "best_metric")
  local values, is_named = values_of(self)
  local best, step
  if is_named then
    best, step = {}, {}
    for name, list in pairs(values) do
      if type(list[1]) == "number" or c.is_tensor(list[1]) and list[1]:numel() == 1 then
        best[name], step[name] = best_of(list, is_up(self, class.is_a(self.metric,
          MetricCollection) and name or nil))
      end
    end
  else
    best, step = best_of(values, is_up(self))
    if best == nil then
      errors.blame("best_metric: %s must compute a number: got %s",
        getmetatable(self.metric).__name, errors.show(values[1]))
    end
  end
  if o.return_step then return best, step end
  return best
end

--- Resets this step.
function MetricTracker:reset() self.metric:reset() end

--- Resets all steps, not their number.
function MetricTracker:reset_all()
  self.metric:reset()
  self._computed = {}
  for k = 1, #self._past do self._past[k] = self.metric:state_dict() end
end

--- Moves the metric to a device; states of other steps follow when they are used.
function MetricTracker:to(device)
  self.metric:to(device)
  return self
end

--- Returns the states of all steps, for checkpoints.
function MetricTracker:state_dict()
  local steps = table.move(self._past, 1, #self._past, 1, {})
  if self.n_steps > 0 then steps[self.n_steps] = self.metric:state_dict() end
  return { steps = steps }
end

--- Restores the states.
function MetricTracker:load_state_dict(saved)
  schema.check(saved, { steps = "table" }, "MetricTracker")
  self.n_steps, self._computed = #saved.steps, {}
  self._past = table.move(saved.steps, 1, self.n_steps - 1, 1, {})
  if self.n_steps > 0 then self.metric:load_state_dict(saved.steps[self.n_steps]) end
end

--- Returns the merged states of several parts, step by step.
function MetricTracker:joined(parts, who, ranks)
  local steps = {}
  for k = 1, #parts[1].steps do
    local of_step = {}
    for i, part in ipairs(parts) do
      if #part.steps ~= #parts[1].steps then
        errors.blame("%s: ranks must call increment() as often: %d steps and %d", who or "joined",
          #parts[1].steps, #part.steps)
      end
      of_step[i] = part.steps[k]
    end
    steps[k] = self.metric:joined(of_step, who, ranks)
  end
  return { steps = steps }
end

return MetricTracker
