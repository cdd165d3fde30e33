-- stdlib/metrics/Metric.lua: the base class of metrics: values that accumulate over batches and
-- ranks, exactly.
--
--   local lt = require "ltrain"
--   local Mean = lt.Metric:extend("Mean")
--   function Mean:init()
--     self:add_state("total", 0.0)
--     self:add_state("count", 0)
--   end
--   function Mean:update(x)
--     self.total, self.count = self.total + x:sum():item(), self.count + x:numel()
--   end
--   function Mean:compute() return self.total / self.count end
--   local mean = Mean()
--   mean:update(lt.tensor{1.0, 2.0})
--   mean:update(lt.tensor{6.0})
--   print(mean:compute())
--   -- prints: 3.0
--
-- A state is a number, a tensor or a list of tensors, with a reduction; merging, resetting, saving
-- and the reduction over ranks follow from it. A metric whose states cannot be reduced like this
-- overrides `merge`.
--
-- On several ranks each accumulates its own part of the data. The values that `self:log` logs are
-- over all ranks, and so is `metric:compute()` in hooks that all ranks run
-- (on_validation_epoch_end, on_train_end, ...). In steps, and wherever ranks may do different
-- things, it is over the rank's own updates; `compute{sync = true}` is over all ranks, which must
-- all call it, `compute{sync = false}` never communicates.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collective_hooks = require "ltrain.core.collective_hooks"
local config = require "ltrain.core.config"
local data_ranks = require "ltrain.dist.data_ranks"
local deferred_sums = require "ltrain.metrics.deferred_sums"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local gather_values = require "ltrain.dist.gather_values"
local metric_plot = require "ltrain.metrics.metric_plot"
local reductions = require "ltrain.core.reductions"
local schema = require "ltrain.core.schema"
local strict_arity = require "ltrain.core.strict_arity"

local Metric = class.extend(nil, "Metric")

Metric.compute_options = {
  sync = { type = "boolean",
    doc = "true: over all ranks, which must all call it; false: this rank's own" },
}

local function is_updated(of_rank) return not of_rank.fresh end

-- The states of all ranks, in order of rank: of each replica of the module those of one.
local function all_states(self)
  local name, parts = getmetatable(self).__name, {}
  local ranks = gather_values { class = name, states = self:state_dict(),
    fresh = self._fresh or nil }
  for i, of_rank in ipairs(ranks) do
    if of_rank.class ~= ranks[1].class then
      errors.blame("compute: ranks ask for different metrics: %s on rank 0, %s on rank %d",
        ranks[1].class, of_rank.class, i - 1)
    end
  end
  for i, picked in ipairs(data_ranks.pick(ranks, is_updated)) do parts[i] = picked.states end
  return parts
end

-- Until it is closed, compute uses this rank's states only.
local function alone(self)
  local before = self._alone
  self._alone = true
  return setmetatable({}, { __close = function() self._alone = before end })
end

-- Wraps a `compute`: it first merges the states of all ranks, in hooks that all ranks run.
local function synced(compute)
  return function(self, options)
    local sync = config.check(options, Metric.compute_options, "compute").sync
    if sync == nil then sync = collective_hooks.running() end
    if sync and not self._alone and dist.world_size() > 1 then
      return self:figure_of(all_states(self), "compute")
    end
    deferred_sums.read(self)
    local _ <close> = alone(self) -- also where it calls that of the class above
    return compute(self)
  end
end

-- The device of the first tensor among arguments; nil: there is none.
local function device_of(first, ...)
  if c.is_tensor(first) then return first.device end
  if select("#", ...) > 0 then return device_of(...) end
end

-- Moves the states to the batch's device.
local function follow(self, ...)
  local device = device_of(...)
  if device and device ~= self._device then self:to(device) end
end

-- Wraps an `update` of the class `name`: it first moves the states to the device of its batch.
local function followed(update, name)
  update = strict_arity.fn(update, "update", name)
  return function(self, ...)
    if type(self) == "table" then
      follow(self, ...)
      self._fresh = false
    end
    return update(self, ...)
  end
end

local WRAPPED <const> = { compute = synced, update = followed }

--- Creates a subclass.
function Metric.extend(parent, name)
  local new = class.extend(parent, name)
  local meta = getmetatable(new)
  local define = meta.__newindex
  function meta.__newindex(self, key, value)
    local wrap = type(value) == "function" and WRAPPED[key]
    define(self, key, wrap and wrap(value, self.__name) or value)
  end
  return new
end

function Metric:init() end

-- A copy that shares nothing with the original.
local function copy(value)
  if type(value) == "userdata" then return value:detach():clone() end
  if type(value) == "table" then return table.move(value, 1, #value, 1, {}) end
  return value
end

-- A state on the metric's device; nil: not known.
local function placed(value, device)
  if not device then return value end
  if type(value) == "userdata" then return value:to(device) end
  if type(value) ~= "table" then return value end
  local list = {}
  for i, tensor in ipairs(value) do list[i] = tensor:to(device) end
  return list
end

--- Declares a state, a field of that name: its default is a number, a tensor, or {} with reduce =
--- "cat". Options: reduce: "sum" (the default), "min", "max", or "cat" for lists.
function Metric:add_state(name, default, options)
  local is_list = type(default) == "table"
  local o = config.check(options, {
    reduce = { type = "string", choices = { "sum", "min", "max", "cat" },
               default = is_list and "cat" or "sum" },
  }, "add_state")
  if is_list ~= (o.reduce == "cat") or is_list and #default > 0
    or not is_list and type(default) ~= "number" and type(default) ~= "userdata" then
    errors.blame("add_state: '%s' must start from a number, a tensor, or {} with reduce = 'cat': "
      .. "got %s", tostring(name), errors.show(default))
  end
  if Metric[name] ~= nil then
    errors.blame("add_state: '%s' is a method of every Metric: give the state another name", name)
  end
  self._states = self._states or {}
  table.insert(self._states, { name = name, default = copy(default), reduce = o.reduce })
  self[name] = copy(default)
  self._fresh = true
end

--- To be overridden: updates the states with a batch.
function Metric:update(...)
  errors.blame("%s: update is not defined", getmetatable(self).__name)
end

--- To be overridden: returns the value for all updates since the last reset.
function Metric:compute()
  errors.blame("%s: compute is not defined", getmetatable(self).__name)
end

--- Returns the declared states: a list of { name =, default =, reduce = }.
function Metric:states() return self._states or {} end

--- Moves the states to a device. `update` does so for the device of its first tensor.
function Metric:to(device)
  device = config.argument(device, "string", "to", "device")
  deferred_sums.read(self)
  for _, state in ipairs(self:states()) do
    state.default = placed(state.default, device)
    self[state.name] = placed(self[state.name], device)
  end
  self._device = device
  return self
end

--- Resets the states to their defaults.
function Metric:reset()
  for _, state in ipairs(self:states()) do self[state.name] = copy(state.default) end
  self.batch_value, self._batch, self._late, self._fresh = nil, nil, nil, true
end

-- The current states, by name.
local function field(self)
  deferred_sums.read(self)
  local values = {}
  for _, state in ipairs(self:states()) do values[state.name] = self[state.name] end
  return values
end

local function put(self, values)
  self._fresh = false
  for _, state in ipairs(self:states()) do self[state.name] = values[state.name] end
end

-- A copy of this metric with the states `values`.
local function like(self, values)
  local other = setmetatable({}, getmetatable(self))
  for key, value in next, self do other[key] = value end
  other._late = nil
  put(other, values)
  return other
end

--- Merges the states of another metric of the same class into this one. An override changes the
--- states of `self` to those of both parts of the data.
function Metric:merge(other)
  if getmetatable(other) ~= getmetatable(self) then
    errors.blame("merge: a %s is needed: got %s", getmetatable(self).__name, errors.show(other))
  end
  deferred_sums.read(self)
  deferred_sums.read(other)
  for _, state in ipairs(self:states()) do
    self[state.name] = reductions[state.reduce](self[state.name], other[state.name])
  end
end

-- Runs fn(self) while the states of self are those of all `parts` merged.
local function holding(self, parts, fn)
  local before, batch_value, batch = field(self), self.batch_value, self._batch
  local _ <close> = alone(self)
  local _ <close> = setmetatable({}, { __close = function()
    put(self, before)
    self.batch_value, self._batch = batch_value, batch
  end })
  self:load_state_dict(parts[1])
  for i = 2, #parts do
    local other = like(self, {})
    other:load_state_dict(parts[i])
    self:merge(other)
  end
  return fn(self)
end

-- The properties of a state that must be equal on all ranks, as a text; nil: none. Lists of any
-- lengths can be concatenated, and a custom merge may accept any shapes.
local function form_of(self, state, value)
  local is_list = type(value) == "table"
  if is_list then value = value[1] end
  if type(value) ~= "userdata" then
    return not (is_list and value == nil) and type(value) or nil
  end
  if self.merge ~= Metric.merge then return "a tensor" end
  local sizes = value.shape
  if is_list then sizes[1] = #sizes > 0 and "*" or nil end
  return ("%s[%s] %s"):format(is_list and "a list of " or "", table.concat(sizes, ", "),
    value.dtype)
end

-- Raises unless all parts have states of one form. `ranks`: their ranks, by default 0, 1, ...
local function check_parts(self, parts, who, ranks)
  for _, state in ipairs(self:states()) do
    local form, from
    for i, part in ipairs(parts) do
      local rank, own = ranks and ranks[i] or i - 1, form_of(self, state, part[state.name])
      if form and own and own ~= form then
        errors.blame("%s: state '%s' of %s differs: %s on rank %d, %s on rank %d", who, state.name,
          getmetatable(self).__name, form, from, own, rank)
      end
      if own and not form then form, from = own, rank end
    end
  end
end

--- Returns the value for several parts of the data: `parts` are the results of their state_dict, in
--- the order of ranks. The object itself is not changed. `who` is the prefix of error messages,
--- `ranks` are the ranks of the parts.
function Metric:figure_of(parts, who, ranks)
  check_parts(self, parts, who or "figure_of", ranks)
  return holding(self, parts, self.compute)
end

--- Returns the merged states of several parts, as state_dict does.
function Metric:joined(parts, who, ranks)
  check_parts(self, parts, who or "joined", ranks)
  return holding(self, parts, self.state_dict)
end

--- metric(...) updates the metric and returns the value of that batch only (on this rank), which is
--- kept as `batch_value`.
function Metric:__call(...)
  follow(self, ...)
  local before = field(self)
  for _, state in ipairs(self:states()) do self[state.name] = copy(state.default) end
  local _ <close> = alone(self)
  self:update(...)
  local value = self:compute()
  local batch = field(self)
  if self.merge == Metric.merge then
    for _, state in ipairs(self:states()) do
      self[state.name] = reductions[state.reduce](before[state.name], batch[state.name])
    end
  else
    put(self, before)
    self:merge(like(self, batch))
  end
  self.batch_value, self._batch = value, batch
  return value
end

--- Returns the states of the last batch of metric(...); nil if there is none.
function Metric:batch_states() return self._batch end

--- Draws what compute() returns, as [lt.plot](tensor.md#displaying-values) does: a confusion matrix
--- as a heat map, curves as lines, numbers as bars; with `values = {...}`, a list of what
--- metric(...) or compute returned, a line over them. Other options are those of lt.plot.
function Metric:plot(options) return metric_plot(self, options) end

--- Returns the states by name, for checkpoints.
function Metric:state_dict()
  deferred_sums.read(self)
  local saved = {}
  for _, state in ipairs(self:states()) do saved[state.name] = copy(self[state.name]) end
  return saved
end

--- Restores the states, on the metric's device.
function Metric:load_state_dict(saved)
  schema.check(saved, {}, getmetatable(self).__name)
  self._late = nil
  for _, state in ipairs(self:states()) do
    local value = saved[state.name]
    if type(value) ~= type(state.default) then
      errors.blame("load_state_dict: state '%s' of %s must be %s: got %s", state.name,
        getmetatable(self).__name, errors.show(state.default), errors.show(value))
    end
    self[state.name] = placed(copy(value), self._device)
  end
  self._fresh = false
end

return Metric
