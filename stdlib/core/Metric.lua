-- stdlib/core/Metric.lua: a figure that is gathered over many batches and stays exact.
--
--   local Mean = lt.Metric:extend("Mean")
--   function Mean:init()
--     self:add_state("total", 0.0)
--     self:add_state("count", 0)
--   end
--   function Mean:update(x) self.total, self.count = self.total + x:sum():item(), ... end
--   function Mean:compute() return self.total / self.count end
--
-- A state is a number, a tensor or a list of tensors, with the way in which two halves of the data
-- are joined; from it come merging, resetting, saving, and the reduction over processes.

local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local joins = require "ltrain.core.joins"

local Metric = class.extend(nil, "Metric")

Metric.extend = class.extend

function Metric:init() end

-- A copy that later updates of the original do not reach.
local function copy(value)
  if type(value) == "userdata" then return value:detach():clone() end
  if type(value) == "table" then return table.move(value, 1, #value, 1, {}) end
  return value
end

--- Declare a state, a field of that name: a number or tensor to start from, or {} with reduce =
--- "cat". Options: reduce ("sum"; "cat" for a list): "sum", "min", "max" or "cat".
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
end

--- Overridden: take in a batch.
function Metric:update()
  errors.blame("%s: update is not defined", getmetatable(self).__name)
end

--- Overridden: the figure for all that was taken in since the last reset.
function Metric:compute()
  errors.blame("%s: compute is not defined", getmetatable(self).__name)
end

--- The states as they are declared: a list of { name =, default =, reduce = }.
function Metric:states() return self._states or {} end

--- Forget what was taken in.
function Metric:reset()
  for _, state in ipairs(self:states()) do self[state.name] = copy(state.default) end
  self.batch_value = nil
end

--- Join in what another metric of the same class has taken in.
function Metric:merge(other)
  if getmetatable(other) ~= getmetatable(self) then
    errors.blame("merge: a %s is needed: got %s", getmetatable(self).__name, errors.show(other))
  end
  for _, state in ipairs(self:states()) do
    self[state.name] = joins[state.reduce](self[state.name], other[state.name])
  end
end

--- The figure of several parts of the data together: `parts` are what their state_dict gave, in the
--- order of ranks. What this object has taken in itself stays.
function Metric:figure_of(parts)
  local saved, batch_value = self:state_dict(), self.batch_value
  self:load_state_dict(parts[1])
  for i = 2, #parts do
    local other = setmetatable({ _states = self._states }, getmetatable(self))
    other:load_state_dict(parts[i])
    self:merge(other)
  end
  local value = self:compute()
  self:load_state_dict(saved)
  self.batch_value = batch_value
  return value
end

--- metric(...) takes in a batch and returns the figure of that batch alone, kept as `batch_value`.
function Metric:__call(...)
  local before = {}
  for _, state in ipairs(self:states()) do
    before[state.name] = self[state.name]
    self[state.name] = copy(state.default)
  end
  self:update(...)
  local value = self:compute()
  for _, state in ipairs(self:states()) do
    self[state.name] = joins[state.reduce](before[state.name], self[state.name])
  end
  self.batch_value = value
  return value
end

--- What a checkpoint keeps: its states by name.
function Metric:state_dict()
  local saved = {}
  for _, state in ipairs(self:states()) do saved[state.name] = copy(self[state.name]) end
  return saved
end

--- Takes that back.
function Metric:load_state_dict(saved)
  for _, state in ipairs(self:states()) do
    local value = saved[state.name]
    if type(value) ~= type(state.default) then
      errors.blame("load_state_dict: state '%s' of %s must be %s: got %s", state.name,
        getmetatable(self).__name, errors.show(state.default), errors.show(value))
    end
    self[state.name] = copy(value)
  end
end

return Metric
