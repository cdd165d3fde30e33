--- stdlib/apps/check/checks/zero_grad.lua: gradients that zero_grad() takes away before a step has
--- used them.
--
-- Two orders: zero_grad() between backward and the optimizer's step, which then has no gradients;
-- and, where gradients are accumulated over batches, zero_grad() in each batch, so that the step
-- has those of its own batch only. For the second, in manual optimization, training_step is called
-- for several batches without its steps. Two passes within one batch (SAM) are in order.
local Experiment = require "ltrain.apps.check.experiment"
local errors = require "ltrain.core.errors"
local parameters_of = require "ltrain.core.parameters_of"

local BATCHES <const> = 3

local REMEDY <const> = "call zero_grad() right before the first backward, or right after the "
  .. "optimizer's step()"

local function closing(fn) return setmetatable({}, { __close = fn }) end

-- Replaces a method of one object by wrap(its own); to be closed.
local function wrap(object, name, wrapper)
  local own, plain = rawget(object, name), object[name]
  if type(plain) ~= "function" then return nil end
  rawset(object, name, wrapper(plain))
  return function() rawset(object, name, own) end
end

-- Which parameters of a list have gradients.
local function with_gradients(list)
  local found = {}
  for _, parameter in ipairs(list) do
    if parameter.grad then found[#found + 1] = parameter end
  end
  return found
end

-- Calls on_zero(parameters that lost their gradients, line) after each zero_grad, and
-- on_step(optimizer) after each step; to be closed.
local function watch(state, on_zero, on_step)
  local restore = {}
  local function zeroing(list)
    return function(plain)
      return function(...)
        local before, where = with_gradients(list), errors.where():match "^(.-:%d+)"
        local result = plain(...)
        local lost = {}
        for _, parameter in ipairs(before) do
          if not parameter.grad then lost[#lost + 1] = parameter end
        end
        on_zero(lost, where)
        return result
      end
    end
  end
  for _, optimizer in ipairs(state.optimizers) do
    restore[#restore + 1] = wrap(optimizer, "zero_grad", zeroing(parameters_of(optimizer)))
    restore[#restore + 1] = on_step and wrap(optimizer, "step", function(plain)
      return function(...)
        local result = plain(...)
        on_step(optimizer)
        return result
      end
    end)
  end
  restore[#restore + 1] = wrap(state.module, "zero_grad", zeroing(state.module:parameters()))
  return closing(function()
    for i = #restore, 1, -1 do restore[i]() end
  end)
end

-- The real step: counts the calls, and looks for an optimizer whose gradients are gone.
local function watch_step(context, state)
  local lost, counts = {}, { steps = 0, zeroed = 0 }
  context.counts = counts
  return watch(state, function(list, where)
    counts.zeroed = counts.zeroed + 1
    for _, parameter in ipairs(list) do lost[parameter] = where or context.step_line end
  end, function(optimizer)
    counts.steps = counts.steps + 1
    local where
    for _, parameter in ipairs(parameters_of(optimizer)) do
      if parameter.grad then return end
      where = where or lost[parameter]
    end
    if not where then return end
    context.report:error("zero_grad", where, ("zero_grad() between backward and step(): the step "
      .. "of %s has no gradients, and changes nothing"):format(optimizer.__name
      or "the optimizer"), REMEDY)
  end)
end

-- Batches in a row without their steps: the line at which gradients are lost that no step has used.
local function lost_between(context, state)
  local left, line = false, nil -- left: the batch before has made no step, and left gradients
  for index = 1, BATCHES do
    if not left then state.module:zero_grad() end
    local older, steps, zeroed = left, 0, nil
    local _ <close> = watch(state, function(lost, where)
      if #lost > 0 then zeroed = where or context.step_line end
      if older then line = line or zeroed end
      older = false
    end)
    local before = state.loop.batch_idx
    state.loop.batch_idx = index - 1
    local ok = Experiment.try(Experiment.step, state, context.batch, context.draws, function()
      steps, older, zeroed = steps + 1, false, nil
    end)
    state.loop.batch_idx = before
    if not ok then return nil end
    left = steps == 0 and #with_gradients(state.module:parameters()) > 0
    if steps == 0 and not left then line = line or zeroed end
  end
  return line
end

-- zero_grad in a training_step whose gradients the Trainer accumulates.
local function zeroed_in_step(context, state)
  local line
  local _ <close> = watch(state, function(_, where) line = line or where or context.step_line end)
  Experiment.try(Experiment.step, state, context.batch, context.draws)
  return line
end

return {
  before = function(context, state)
    if #state.optimizers == 0 or not context.first then return end
    local accumulated, line = state.trainer.accumulate_grad_batches, nil
    if not state.automatic then
      line = lost_between(context, state)
      state.module:zero_grad()
    elseif accumulated > 1 then
      line = zeroed_in_step(context, state)
    end
    if not line then return end
    context.report:error("zero_grad", line, state.automatic
      and ("zero_grad() in training_step, with accumulate_grad_batches = %d: gradients of the "
        .. "earlier batches are lost"):format(accumulated)
      or "zero_grad() in a batch without a step: its gradients are lost, and the step uses those "
        .. "of its own batch only",
      state.automatic and "leave it out: the Trainer calls zero_grad()"
      or "call zero_grad() where step() is called, right after it")
  end,
  begins = function(context, state) context.zeroing = watch_step(context, state) end,
  after = function(context)
    local _ <close> = context.zeroing
    context.zeroing = nil
  end,
}
