-- stdlib/optim/LRScheduler.lua: the base class of learning-rate schedulers.
--
-- A subclass defines `rate(base, n)`: the learning rate after n steps of a group whose initial one
-- was `base`; or a table with it: {lr =, momentum =, betas =}. It is a closed formula, so that
-- rounding errors do not accumulate and a resumed run has the same learning rates.
--
-- All take the option `warmup = n`: before the schedule begins, the learning rate rises over n
-- steps to its initial value, which is multiplied by 1 / (n + 1), 2 / (n + 1), ...
--
--   local lt = require "ltrain"
--   local optimizer = lt.optim.SGD(lt.nn.Linear(2, 1):parameters(), {lr = 1.0})
--   local scheduler = lt.optim.StepLR(optimizer, 2, {gamma = 0.1, warmup = 3})
--   local rates = {}
--   for i = 1, 6 do
--     rates[i] = scheduler:get_last_lr()[1]
--     optimizer:step()
--     scheduler:step()
--   end
--   print(table.concat(rates, " "))
--   -- prints: 0.25 0.5 0.75 1.0 1.0 0.1

local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local schema = require "ltrain.core.schema"

local LRScheduler = class.extend(nil, "LRScheduler")

LRScheduler.extend = class.extend

local function is_finite(value)
  return type(value) == "number" and value - value == 0
end

local WARMUP <const> = { type = "integer", default = 0, min = 0,
  doc = "steps in which the learning rate rises to its initial value" }

--- Returns the rows of a scheduler's options, including `warmup`.
function LRScheduler.rows(own)
  own.warmup = WARMUP
  return own
end

--- Returns the value of a group after `n` steps including the warm-up: a learning rate, or a table
--- with it.
function LRScheduler:value(base, n, index)
  local before = n < self.warmup
  local value = self:rate(base, before and 0 or n - self.warmup, index)
  if not before then return value end
  local share = (n + 1) / (self.warmup + 1)
  if type(value) ~= "table" then return value * share end
  local warm = {}
  for name, number in next, value do warm[name] = number end
  warm.lr = value.lr * share
  return warm
end

-- Sets what a group is stepped with. `momentum` is the first of the betas where it has these.
local function set(group, value)
  if type(value) ~= "table" then
    group.lr = value
    return
  end
  group.lr = value.lr
  if value.betas then group.betas = value.betas end
  if value.momentum and group.betas then
    group.betas = { value.momentum, group.betas[2] }
  elseif value.momentum then
    group.momentum = value.momentum
  end
end

-- Learning rates are multiplied by it (multiply_rates).
LRScheduler._factor = 1.0

-- The value of a group times the factor of the learning rates.
local function multiplied(value, factor)
  if factor == 1.0 then return value end
  if type(value) ~= "table" then return value * factor end
  local all = {}
  for name, number in next, value do all[name] = number end
  all.lr = value.lr * factor
  return all
end

--- Sets the learning rates for the current number of steps. Groups that were added later keep
--- theirs.
function LRScheduler:apply()
  for i, base in ipairs(self.base_lrs) do
    local value = multiplied(self:value(base, self.last_epoch, i), self._factor)
    local rate = value
    if type(value) == "table" then rate = value.lr end
    if not is_finite(rate) then
      errors.blame("%s: the rate of group %d after %d steps must be a finite number: got %s",
        getmetatable(self).__name, i, self.last_epoch, errors.show(rate))
    end
    set(self.optimizer.param_groups[i], value)
  end
end

--- Raises an error unless the first argument of a scheduler is an optimizer. For subclasses that
--- check other arguments before they call init.
function LRScheduler:check_optimizer(optimizer)
  if type(optimizer) ~= "table" or type(optimizer.param_groups) ~= "table" then
    errors.blame("optim.%s: the first argument must be an optimizer: got %s",
      getmetatable(self).__name, errors.show(optimizer))
  end
end

--- Starts with the current learning rates of the optimizer's groups. `warmup` (optional): a number
--- of steps.
function LRScheduler:init(optimizer, warmup)
  self:check_optimizer(optimizer)
  self.optimizer, self.base_lrs, self.last_epoch = optimizer, {}, 0
  self.warmup = config.value(warmup or 0, WARMUP, "optim." .. getmetatable(self).__name, "warmup")
  for i, group in ipairs(optimizer.param_groups) do
    group.initial_lr = group.initial_lr or group.lr
    self.base_lrs[i] = group.initial_lr
  end
  self:apply()
end

--- To be overridden: the learning rate of group `index` after `n` steps; it began with `base`.
function LRScheduler:rate(base, n, index)
  errors.blame("%s: rate is not defined", getmetatable(self).__name)
end

--- Multiplies the learning rates of the schedule by `factor`, from the current step on; its steps
--- are those that they were. It is in the state. The Trainer calls it where a fit is resumed with
--- another global batch.
function LRScheduler:multiply_rates(factor)
  self._factor = self._factor * config.argument(factor, "number",
    getmetatable(self).__name .. ":multiply_rates", "factor", { min = 0 })
  self:apply()
end

--- Takes a step: call it after optimizer:step, once per epoch or once per batch.
function LRScheduler:step()
  self.last_epoch = self.last_epoch + 1
  self:apply()
end

--- Returns one number for each group: `value` is one number for all, or a list. For subclasses.
function LRScheduler.per_group(optimizer, value, where, name)
  local groups = optimizer and optimizer.param_groups or {}
  local list = {}
  for i = 1, #groups do
    local own = value
    if type(value) == "table" then own = value[i] end
    list[i] = config.argument(own, "number", where, name)
  end
  if type(value) == "table" and #value ~= #groups then
    errors.blame("%s: %s: %d numbers for %d groups", where, name, #value, #groups)
  end
  return list
end

--- Returns the learning rate of each group.
function LRScheduler:get_last_lr()
  local rates = {}
  for i, group in ipairs(self.optimizer.param_groups) do rates[i] = group.lr end
  return rates
end

function LRScheduler:state_dict()
  return { class = getmetatable(self).__name, last_epoch = self.last_epoch,
           factor = self._factor ~= 1.0 and self._factor or nil,
           base_lrs = table.move(self.base_lrs, 1, #self.base_lrs, 1, {}) }
end

--- Restores the state, and sets the learning rates.
function LRScheduler:load_state_dict(state)
  local name = getmetatable(self).__name
  if type(state) ~= "table" then
    errors.blame("%s: load_state_dict: the state must be a table: got %s", name,
      errors.show(state))
  end
  class.check_saved(self, state.class, name)
  if type(state.base_lrs) ~= "table" or math.type(state.last_epoch) ~= "integer" then
    errors.blame("%s: load_state_dict: this is not the state of a scheduler: base_lrs is %s, "
      .. "last_epoch is %s", name, errors.show(state.base_lrs), errors.show(state.last_epoch))
  elseif #state.base_lrs ~= #self.base_lrs then
    errors.blame("%s: load_state_dict: the state has %d groups, the scheduler %d", name,
      #state.base_lrs, #self.base_lrs)
  end
  schema.check(state, { base_lrs = { list = "number" }, factor = "number?" }, name)
  self._factor = state.factor or 1.0
  self.last_epoch = state.last_epoch
  self.base_lrs = table.move(state.base_lrs, 1, #state.base_lrs, 1, {})
  self:apply()
end

return LRScheduler
