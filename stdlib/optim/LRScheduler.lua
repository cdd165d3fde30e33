-- stdlib/optim/LRScheduler.lua: what a learning-rate scheduler is.
--
-- A subclass gives `rate(base, n)`: the rate of a group that began with `base`, after n steps. The
-- formula is closed, so that nothing drifts and a resumed run has the same rates.

local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local shape = require "ltrain.core.shape"

local LRScheduler = class.extend(nil, "LRScheduler")

LRScheduler.extend = class.extend

local function is_finite(value)
  return type(value) == "number" and value - value == 0
end

--- Set the rates for the number of steps so far. A group that was added since keeps its own.
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

--- Begin with the rates that the optimizer's groups have now.
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

--- Overridden: the rate of group `index`, which began with `base`, after `n` steps.
function LRScheduler:rate(base, n, index)
  errors.blame("%s: rate is not defined", getmetatable(self).__name)
end

--- One step on: call it after optimizer:step, once an epoch or once a batch.
function LRScheduler:step()
  self.last_epoch = self.last_epoch + 1
  self:apply()
end

--- The rate of each group.
function LRScheduler:get_last_lr()
  local rates = {}
  for i, group in ipairs(self.optimizer.param_groups) do rates[i] = group.lr end
  return rates
end

function LRScheduler:state_dict()
  return { class = getmetatable(self).__name, last_epoch = self.last_epoch,
           base_lrs = table.move(self.base_lrs, 1, #self.base_lrs, 1, {}) }
end

--- Take that back, and set the rates that belong to it.
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
