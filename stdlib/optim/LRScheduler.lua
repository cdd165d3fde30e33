-- stdlib/optim/LRScheduler.lua: the base class of learning-rate schedulers.
--
-- A subclass defines `rate(base, n)`: the learning rate after n steps of a group whose initial one
-- was `base`. It is a closed formula, so that rounding errors do not accumulate and a resumed run
-- has the same learning rates.

local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local shape = require "ltrain.core.shape"

local LRScheduler = class.extend(nil, "LRScheduler")

LRScheduler.extend = class.extend

local function is_finite(value)
  return type(value) == "number" and value - value == 0
end

--- Sets the learning rates for the current number of steps. Groups that were added later keep
--- theirs.
function LRScheduler:apply()
  for i, base in ipairs(self.base_lrs) do
    local rate = self:rate(base, self.last_epoch, i)
    if not is_finite(rate) then
      errors.blame("%s: the rate of group %d after %d steps must be a finite number: got %s",
        getmetatable(self).__name, i, self.last_epoch, errors.show(rate))
    end
    self.optimizer.param_groups[i].lr = rate
  end
end

--- Starts with the current learning rates of the optimizer's groups.
function LRScheduler:init(optimizer)
  if type(optimizer) ~= "table" or type(optimizer.param_groups) ~= "table" then
    errors.blame("optim.%s: the first argument must be an optimizer: got %s",
      getmetatable(self).__name, errors.show(optimizer))
  end
  self.optimizer, self.base_lrs, self.last_epoch = optimizer, {}, 0
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

--- Makes a step: call it after optimizer:step, once per epoch or once per batch.
function LRScheduler:step()
  self.last_epoch = self.last_epoch + 1
  self:apply()
end

--- Returns the learning rate of each group.
function LRScheduler:get_last_lr()
  local rates = {}
  for i, group in ipairs(self.optimizer.param_groups) do rates[i] = group.lr end
  return rates
end

function LRScheduler:state_dict()
  return { class = getmetatable(self).__name, last_epoch = self.last_epoch,
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
  shape.check(state, { base_lrs = { list = "number" } }, name)
  self.last_epoch = state.last_epoch
  self.base_lrs = table.move(state.base_lrs, 1, #state.base_lrs, 1, {})
  self:apply()
end

return LRScheduler
