--- stdlib/trainer/steps/StepClosure.lua: the closure that optimizer_step hands to the optimizer in
--- automatic optimization: it runs training_step and backward of the window's last batch.
--
-- It may be called again in the same step, with other weights (LBFGS). With other batches in the
-- window the gradients add up, as in Lightning, unless the script has cleared them; else the batch
-- has them for itself.
local batch = require "ltrain.trainer.steps.batch"
local hook_calls = require "ltrain.trainer.hook_calls"
local errors = require "ltrain.core.errors"
local object = require "ltrain.trainer.object"
local parameters_of = require "ltrain.core.parameters_of"

local StepClosure = {}

local function has_gradients(optimizer)
  for _, parameter in ipairs(parameters_of(optimizer)) do
    if parameter.grad then return true end
  end
  return false
end

local function restart_window(self, optimizer)
  local state, window = self._state, self._state.window
  state.scaling:check_closure()
  self._is_again = true
  if window:is_empty() then return window:begin_again() end
  if state.ranks.many and not state.strategy:is_replicated "gradient" then
    errors.blame("optimizer_step: the closure was called again in a window of "
      .. "accumulate_grad_batches = %d: the gradients of the other batches are reduced already "
      .. "under %s", state.trainer.accumulate_grad_batches, errors.show(state.strategy))
  end
  if not has_gradients(optimizer) then window:begin_again() end
end

-- A call of it; returns the loss.
local function run_closure(self)
  local state, optimizer = self._state, self._state.optimizers[1]
  if not self._is_open then
    errors.blame("optimizer_step: the closure was called after optimizer_step had ended")
  end
  if self._was_called then restart_window(self, optimizer) end
  self._was_called = true
  if not state.ranks.slices then state.rerun:note_draws() end
  local loss = batch.run(state, state.window:is_empty())
  state.window:reduce(optimizer)
  return loss
end

--- That of the fit `state`.
function StepClosure.new(state)
  local self = object(StepClosure, { _state = state, _is_open = false, _was_called = false,
    _is_again = false })
  self._fn = function() return run_closure(self) end
  return self
end

--- Whether optimizer_step runs.
function StepClosure:is_open() return self._is_open end

--- Whether it was called more than once in the step that is being made.
function StepClosure:is_again() return self._is_again end

--- Calls optimizer_step.
function StepClosure:step()
  local state = self._state
  self._is_open, self._was_called = true, false
  hook_calls.method(state, "optimizer_step", state.trainer.current_epoch, state.loop.batch_idx,
    state.optimizers[1], self._fn)
  self._is_open, self._is_again = false, false
  if not self._was_called then
    errors.blame("optimizer_step: the closure was not called: it runs training_step and backward: "
      .. "give it to optimizer:step(closure), or call it")
  end
end

return StepClosure
