--- stdlib/trainer/steps/OptimizerSteps.lua: wraps the `step` of a fit's optimizers: hooks before
--- and after it, counting, gradient checks and unscaling.
--
-- While a fit runs, `step` of its optimizers is the one made here, whoever calls it and whatever
-- class they are of: after the closure, before weights change, come the hooks, clipping and the
-- check of the gradients; after it the step is counted.
local Module = require "ltrain.nn.Module"
local Optimizer = require "ltrain.optim.Optimizer"
local Precision = require "ltrain.core.Precision"
local Strategy = require "ltrain.strategies.Strategy"
local c = require "ltrain.c"
local hook_calls = require "ltrain.trainer.hook_calls"
local errors = require "ltrain.core.errors"
local exchange = require "ltrain.trainer.ranks.exchange"
local notices = require "ltrain.trainer.ranks.rank_warnings"
local object = require "ltrain.trainer.object"
local optimizers = require "ltrain.trainer.optimizers"
local parameters_of = require "ltrain.core.parameters_of"
local replicas = require "ltrain.trainer.ranks.replica_checks"
local shared_gradients = require "ltrain.trainer.ranks.shared_gradients"

local OptimizerSteps = {}

-- Whether clipping is what the Trainer's options say, and nothing of the script's.
local function uses_default_clipping(state)
  return not hook_calls.overrides(state.module, "configure_gradient_clipping", Module)
    and not hook_calls.overrides(state.module, "clip_gradients", Module)
    and state.precision.clip_gradients == Precision.clip_gradients
end

-- Hooks and clipping of automatic optimization; whether the step may be taken. Clipping by value
-- would hide an infinity: there the gradients are checked first.
local function clip_and_check(state, optimizer)
  local options = state.trainer.options
  local clip, algorithm = options.gradient_clip_val, options.gradient_clip_algorithm
  state.scaling:unscale(optimizer)
  hook_calls.hook(state, "on_before_optimizer_step", optimizer)
  if not (clip and clip > 0 or state.hooks.configure_gradient_clipping) then
    return state.nonfinite:allows(optimizer)
  end
  local plain = uses_default_clipping(state)
  local first = plain and algorithm == "value"
  if first and not state.nonfinite:allows(optimizer) then return false end
  optimizer._norm_before = nil
  hook_calls.method(state, "configure_gradient_clipping", optimizer, clip, algorithm)
  local norm = plain and optimizer._norm_before
  optimizer._norm_before = nil
  return first or state.nonfinite:allows(optimizer, norm or nil)
end

local function may_step(state, optimizer)
  replicas.check_places(state)
  if state.step_closure:is_open() then
    if not state.window:has_loss() then return false end -- there was no loss
    return clip_and_check(state, optimizer)
  end
  if not state.automatic then
    shared_gradients.sync(state, optimizer)
    state.scaling:unscale(optimizer)
    hook_calls.hook(state, "on_before_optimizer_step", optimizer)
  end
  return state.nonfinite:allows(optimizer)
end

-- What comes before weights change; false: they must not.
local function before_step(self, optimizer)
  self._is_updating = may_step(self._state, optimizer)
  return self._is_updating
end

-- An optimizer with a `step` of its own knows nothing of steps that are not to be taken.
local function handle_skipped_own_step(state, optimizer)
  if state.step_closure:is_open() and not state.window:has_loss() then
    for _, parameter in ipairs(parameters_of(optimizer)) do parameter.grad = nil end
  else
    errors.blame("optimizer_step: %s overrides step: %s cannot skip it", errors.show(optimizer),
      state.scaler and ("precision = '%s'"):format(state.precision.name)
      or "nonfinite = 'skip'")
  end
end

-- What scripts do to the weights after a step is meant. All ranks do it: one that had no sample has
-- stepped too.
local function call_after_step_hook(state, optimizer)
  if not hook_calls.defined(state, "on_after_optimizer_step") then return end
  local _ <close> = c.allow_update()
  hook_calls.hook(state, "on_after_optimizer_step", optimizer)
end

local function after_step(self, optimizer, taken)
  local state = self._state
  self._is_updating = false
  shared_gradients.stepped(state, optimizer)
  state.scaling:end_step(optimizer)
  state.precision:after_step()
  if not taken then return end
  state.step_count:add()
  call_after_step_hook(state, optimizer)
  replicas.after_step(state)
  if state.step_closure:is_open() then state.step_count:hold_back() end
end

-- `own`: the step of the optimizer's class.
local function wrap_step(self, optimizer, own)
  local state = self._state
  local user_closure, taken
  local function closure()
    local loss = user_closure()
    taken = before_step(self, optimizer)
    if not taken and own ~= Optimizer.step then handle_skipped_own_step(state, optimizer) end
    return loss, taken
  end
  return function(_, asked)
    if state.rerun:is_running() then return state.rerun:step(optimizer, asked) end
    local result
    if asked then
      user_closure, taken = asked, true
      result = own(optimizer, closure)
    else
      taken = before_step(self, optimizer)
      if taken then result = own(optimizer) end
    end
    after_step(self, optimizer, taken)
    return result
  end
end

-- What optimizers ask the strategy, each among all ranks: a method that is the base's, which is
-- about this rank alone, is asked as it is.
local function strategy_calls(state)
  local strategy = state.strategy
  if not state.ranks.many then return strategy end
  local asked = { param_groups = function(_, ...) return strategy:param_groups(...) end }
  for name, what in next, { grad_norm = "gradient norm", optimizer_step = "optimizer step" } do
    local own, is_base = strategy[name], strategy[name] == Strategy[name]
    asked[name] = function(_, ...)
      if is_base then return own(strategy, ...) end
      return exchange(what, own, strategy, ...)
    end
  end
  return asked
end

-- The step of an optimizer's class; of one with a step of its own that whole step, within what the
-- strategy does around each.
local function step_within_strategy(self, optimizer)
  local own = optimizer.step
  if own == Optimizer.step then return own end
  return function(...)
    local args, result = table.pack(...), nil
    self._strategy:optimizer_step(optimizer, function()
      result = own(table.unpack(args, 1, args.n))
    end)
    return result
  end
end

local function attach(self, optimizer)
  self._attached[optimizer] = { step = rawget(optimizer, "step"),
    usual = optimizer.step == Optimizer.step }
  self._count = self._count + 1
  if optimizer.use_strategy then optimizer:use_strategy(self._strategy) end
  rawset(optimizer, "step", wrap_step(self, optimizer, step_within_strategy(self, optimizer)))
  rawset(optimizer, "_report_external_write", function(text) notices.add(self._state, text) end)
end

local function detach(self, optimizer)
  rawset(optimizer, "step", self._attached[optimizer].step)
  rawset(optimizer, "_report_external_write", nil)
  if optimizer.use_strategy then optimizer:use_strategy(nil) end
  self._attached[optimizer] = nil
  self._count = self._count - 1
end

local function are_attached(self, list)
  for i = 1, #list do
    if not self._attached[list[i]] then return false end
  end
  return self._count == #list
end

-- Those that are not stepped yet, as the strategy wants them.
local function set_up_new(self)
  local state, places, new = self._state, {}, {}
  for i, optimizer in ipairs(state.optimizers) do
    if not self._attached[optimizer] then
      if optimizer.use_names_of then optimizer:use_names_of(state.module) end
      places[#places + 1], new[#new + 1] = i, optimizer
    end
  end
  if #new == 0 then return end
  local list = state.strategy:setup_optimizers(new)
  if type(list) ~= "table" or #list ~= #new then
    errors.blame("%s: setup_optimizers must return the list of %d optimizers: got %s",
      errors.show(state.strategy), #new, errors.show(list))
  end
  for k, i in ipairs(places) do state.optimizers[i] = list[k] end
end

-- Takes the optimizers and schedulers that the Trainer has now.
local function sync_with_trainer(self)
  local state, trainer = self._state, self._state.trainer
  optimizers.replace(state, trainer.optimizers, trainer.lr_scheduler_configs)
  local kept = {}
  for _, optimizer in ipairs(state.optimizers) do kept[optimizer] = true end
  for optimizer in next, self._attached do
    if not kept[optimizer] then detach(self, optimizer) end
  end
  set_up_new(self)
  for _, optimizer in ipairs(state.optimizers) do
    if not self._attached[optimizer] then attach(self, optimizer) end
  end
  trainer.optimizers, trainer.lr_scheduler_configs = state.optimizers, state.schedulers
end

--- Those of the fit `state`: from here on each step of its optimizers is made here.
function OptimizerSteps.new(state)
  local self = object(OptimizerSteps, {
    _state = state,
    _strategy = strategy_calls(state), -- what optimizers ask of it
    _attached = {}, -- optimizer -> its own `step`, and whether it is usual
    _count = 0, -- of these
    _is_updating = false, -- whether an optimizer changes weights now
  })
  local trainer = state.trainer
  trainer.optimizers, trainer.lr_scheduler_configs = state.optimizers, state.schedulers
  sync_with_trainer(self)
  return self
end

--- Takes what a script has put into trainer.optimizers or trainer.lr_scheduler_configs since the
--- last batch.
function OptimizerSteps:refresh()
  local state, trainer = self._state, self._state.trainer
  if trainer.optimizers == state.optimizers and are_attached(self, state.optimizers)
    and optimizers.are_read(state, trainer.lr_scheduler_configs) then
    return
  end
  sync_with_trainer(self)
end

--- Whether an optimizer changes weights now.
function OptimizerSteps:is_updating() return self._is_updating end

--- Whether an optimizer has no `step` of its own.
function OptimizerSteps:is_usual(optimizer) return self._attached[optimizer].usual end

--- The norm of an optimizer's gradients, on all ranks.
function OptimizerSteps:grad_norm(optimizer, norm_type)
  return self._strategy:grad_norm(optimizer, norm_type)
end

--- Lets go of the optimizers when the fit is over.
function OptimizerSteps:release()
  for optimizer in next, self._attached do detach(self, optimizer) end
end

return OptimizerSteps
