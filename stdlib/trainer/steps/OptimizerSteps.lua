--- stdlib/trainer/steps/OptimizerSteps.lua: what surrounds each step of an optimizer in a fit.
--
-- While a fit runs, `step` of its optimizers is the one made here, whoever calls it and whatever
-- class they are of: after the closure, before weights change, come the hooks, clipping and the
-- look at the gradients; after it the step is counted.
local Module = require "ltrain.nn.Module"
local Optimizer = require "ltrain.optim.Optimizer"
local Precision = require "ltrain.core.Precision"
local Strategy = require "ltrain.strategies.Strategy"
local c = require "ltrain.c"
local call = require "ltrain.trainer.call"
local errors = require "ltrain.core.errors"
local exchange = require "ltrain.trainer.ranks.exchange"
local nonfinite = require "ltrain.trainer.steps.nonfinite"
local notices = require "ltrain.trainer.ranks.notices"
local optimizers = require "ltrain.trainer.optimizers"
local parameters_of = require "ltrain.core.parameters_of"
local replicas = require "ltrain.trainer.ranks.replicas"
local scaling = require "ltrain.trainer.steps.LossScaling"
local shared_gradients = require "ltrain.trainer.ranks.shared_gradients"

local stepping = {}

-- Whether clipping is what the Trainer's options say, and nothing of the script's.
local function clips_plainly(state)
  return not call.overrides(state.module, "configure_gradient_clipping", Module)
    and not call.overrides(state.module, "clip_gradients", Module)
    and state.precision.clip_gradients == Precision.clip_gradients
end

-- Hooks and clipping of automatic optimization; whether the step may be taken. Clipping by value
-- would hide an infinity: there the gradients are looked at first.
local function complete(state, optimizer)
  local options = state.trainer.options
  local clip, algorithm = options.gradient_clip_val, options.gradient_clip_algorithm
  scaling.unscale(state, optimizer)
  call.hook(state, "on_before_optimizer_step", optimizer)
  if not (clip and clip > 0 or state.hooks.configure_gradient_clipping) then
    return nonfinite.allows(state, optimizer)
  end
  local plain = clips_plainly(state)
  local first = plain and algorithm == "value"
  if first and not nonfinite.allows(state, optimizer) then return false end
  optimizer._norm_before = nil
  call.method(state, "configure_gradient_clipping", optimizer, clip, algorithm)
  local norm = plain and optimizer._norm_before
  optimizer._norm_before = nil
  return first or nonfinite.allows(state, optimizer, norm or nil)
end

local function may_step(state, optimizer)
  replicas.check_places(state)
  if state.step_closure:is_open() then
    if not state.window:has_loss() then return false end -- there was no loss
    return complete(state, optimizer)
  end
  if not state.automatic then
    shared_gradients.sync(state, optimizer)
    scaling.unscale(state, optimizer)
    call.hook(state, "on_before_optimizer_step", optimizer)
  end
  return nonfinite.allows(state, optimizer)
end

-- What comes before weights change; false: they must not.
local function before(state, optimizer)
  state.loop.updating = may_step(state, optimizer)
  return state.loop.updating
end

-- An optimizer with a `step` of its own knows nothing of steps that are not to be taken.
local function check_veto(state, optimizer)
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
local function call_after(state, optimizer)
  if not call.defined(state, "on_after_optimizer_step") then return end
  local _ <close> = c.allow_update()
  call.hook(state, "on_after_optimizer_step", optimizer)
end

local function after(state, optimizer, taken)
  state.loop.updating = false
  shared_gradients.stepped(state, optimizer)
  scaling.stepped(state, optimizer)
  if not taken then return end
  local trainer = state.trainer
  state.loop.taken.steps = state.loop.taken.steps + 1
  trainer.global_step = trainer.global_step + 1
  call_after(state, optimizer)
  replicas.after_step(state)
  if not state.step_closure:is_open() then return end
  -- optimizer_step still has the number of the step that it makes, as in Lightning.
  trainer.global_step, state.loop.uncounted = trainer.global_step - 1, state.loop.uncounted + 1
end

--- Counts the steps that optimizer_step has made, when it has ended.
function stepping.count(state)
  state.trainer.global_step = state.trainer.global_step + state.loop.uncounted
  state.loop.uncounted = 0
end

-- A step of a batch that runs again changes nothing.
local function step_again(state, optimizer, closure)
  local result = closure and closure()
  if state.loop.look then state.loop.look(optimizer) end
  return result
end

-- `own`: the step of the optimizer's class.
local function make_step(state, optimizer, own)
  local user_closure, taken
  local function closure()
    local loss = user_closure()
    taken = before(state, optimizer)
    if not taken and own ~= Optimizer.step then check_veto(state, optimizer) end
    return loss, taken
  end
  return function(_, asked)
    if state.loop.rerunning then return step_again(state, optimizer, asked) end
    local result
    if asked then
      user_closure, taken = asked, true
      result = own(optimizer, closure)
    else
      taken = before(state, optimizer)
      if taken then result = own(optimizer) end
    end
    after(state, optimizer, taken)
    return result
  end
end

-- What optimizers ask the strategy, each among all ranks: a method that is the base's, which is
-- about this rank alone, is asked as it is.
local function around(state)
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
local function step_of(state, optimizer)
  local own = optimizer.step
  if own == Optimizer.step then return own end
  return function(...)
    local args, result = table.pack(...), nil
    state.loop.around:optimizer_step(optimizer, function()
      result = own(table.unpack(args, 1, args.n))
    end)
    return result
  end
end

local function attach(state, optimizer)
  state.loop.held[optimizer] = { step = rawget(optimizer, "step"),
    usual = optimizer.step == Optimizer.step }
  state.loop.held_count = state.loop.held_count + 1
  if optimizer.use_strategy then optimizer:use_strategy(state.loop.around) end
  rawset(optimizer, "step", make_step(state, optimizer, step_of(state, optimizer)))
  rawset(optimizer, "_report_external_write", function(text) notices.add(state, text) end)
end

local function detach(state, optimizer)
  rawset(optimizer, "step", state.loop.held[optimizer].step)
  rawset(optimizer, "_report_external_write", nil)
  if optimizer.use_strategy then optimizer:use_strategy(nil) end
  state.loop.held[optimizer] = nil
  state.loop.held_count = state.loop.held_count - 1
end

local function are_attached(state, list)
  for i = 1, #list do
    if not state.loop.held[list[i]] then return false end
  end
  return state.loop.held_count == #list
end

-- Those that are not stepped yet, as the strategy wants them.
local function set_up_new(state)
  local places, new = {}, {}
  for i, optimizer in ipairs(state.optimizers) do
    if not state.loop.held[optimizer] then
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
local function take(state)
  local trainer = state.trainer
  optimizers.replace(state, trainer.optimizers, trainer.lr_scheduler_configs)
  local kept = {}
  for _, optimizer in ipairs(state.optimizers) do kept[optimizer] = true end
  for optimizer in next, state.loop.held do
    if not kept[optimizer] then detach(state, optimizer) end
  end
  set_up_new(state)
  for _, optimizer in ipairs(state.optimizers) do
    if not state.loop.held[optimizer] then attach(state, optimizer) end
  end
  trainer.optimizers, trainer.lr_scheduler_configs = state.optimizers, state.schedulers
end

--- Begins a fit.
function stepping.prepare(state)
  state.loop.held, state.loop.held_count, state.loop.around = {}, 0, around(state)
  local trainer = state.trainer
  trainer.optimizers, trainer.lr_scheduler_configs = state.optimizers, state.schedulers
  take(state)
end

--- Takes what a script has put into trainer.optimizers or trainer.lr_scheduler_configs since the
--- last batch.
function stepping.refresh(state)
  local trainer = state.trainer
  if trainer.optimizers == state.optimizers and are_attached(state, state.optimizers)
    and optimizers.are_read(state, trainer.lr_scheduler_configs) then
    return
  end
  take(state)
end

--- Lets go of the optimizers when the fit is over.
function stepping.release(state)
  for optimizer in next, state.loop.held or {} do detach(state, optimizer) end
end

return stepping
