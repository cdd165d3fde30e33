--- stdlib/trainer/optimize.lua: runs the forward and backward passes of a training batch, and the
--- optimizer step at the end of its accumulation window.
--
-- The last batch of a window (steps/Window.lua) runs within optimizer_step, when the closure is
-- called; the ones before add their gradients.
local OptimizerSteps = require "ltrain.trainer.steps.OptimizerSteps"
local StepGraph = require "ltrain.trainer.steps.StepGraph"
local StepClosure = require "ltrain.trainer.steps.StepClosure"
local Window = require "ltrain.trainer.steps.Window"
local batch = require "ltrain.trainer.steps.batch"
local c = require "ltrain.c"
local consensus = require "ltrain.trainer.ranks.consensus"
local errors = require "ltrain.core.errors"
local hook_calls = require "ltrain.trainer.hook_calls"
local shared_gradients = require "ltrain.trainer.ranks.shared_gradients"
local slices = require "ltrain.trainer.ranks.slices"

local optimize = {}

--- Begins the windows of a fit. From here on each step of an optimizer, whoever asks for it, is
-- counted, and in manual optimization announced by the hook.
function optimize.prepare(state)
  state.window, state.step_closure = Window.new(state), StepClosure.new(state)
  state.step_graph = StepGraph.new(state)
  shared_gradients.prepare(state)
  state.optimizer_steps = OptimizerSteps.new(state)
  if state.trainer.options.verify_every > 0 then
    state.verification = require "ltrain.trainer.ranks.Verification".new(state)
  end
end

--- Lets go of the optimizers when the fit is over.
function optimize.release(state)
  slices.release(state)
  if state.optimizer_steps then state.optimizer_steps:release() end
end

-- A batch that does not end its window.
local function gather(state)
  batch.run(state, false)
  local optimizer = state.optimizers[1]
  if optimizer then state.nonfinite:check_in_window(optimizer) end
end

-- Automatic optimization of the running batch.
local function automatic(state, is_last)
  local window, optimizer, steps = state.window, state.optimizers[1], false
  if not window:ends(is_last) then
    state.rerun:note_draws()
    gather(state)
    window:add_batch()
    return false, false
  elseif optimizer then
    state.step_closure:step()
    steps = state.step_count:end_step()
  else
    batch.run(state, window:is_empty())
    if state.ranks.many then consensus.step(state, 0, 0) end
  end
  window:close()
  state.nonfinite:end_window()
  return steps, true
end

-- Manual optimization: the step does it all.
local function manual(state)
  if state.loop.outside then
    errors.blame("training_step: rank %d has no data left while others have, and manual "
      .. "optimization cannot step without it: give all ranks equally many batches (drop_last = "
      .. "true or tail = 'wrap' of the DataLoader does)",
      state.trainer.global_rank)
  end
  state.window:begin_manual()
  state.nonfinite:end_window()
  state.rerun:note_draws()
  batch.run_manual(state)
  if state.ranks.many then consensus.step(state, 0, 0) end
  return state.step_count:has_stepped(), true
end

-- A script may change from one to the other between batches.
local function change_mode(state, is_automatic)
  if not state.window:is_empty() then
    errors.blame("training_step: automatic_optimization was changed in the middle of a window of "
      .. "accumulate_grad_batches = %d: change it between windows, as at the start of an epoch",
      state.trainer.accumulate_grad_batches)
  end
  state.automatic = is_automatic
  optimize.check_mode(state)
end

--- Raises when options of the Trainer have no meaning in the mode of optimization.
function optimize.check_mode(state)
  local o = state.trainer.options
  if state.automatic then return end
  if (o.gradient_clip_val or 0) > 0 then
    errors.blame("fit: gradient_clip_val has no meaning in manual optimization: call "
      .. "self:clip_gradients")
  elseif state.trainer.accumulate_grad_batches > 1 then
    errors.blame("fit: accumulate_grad_batches has no meaning in manual optimization")
  elseif state.ranks.slices then
    slices.check_mode(state)
  elseif state.strategy.splits_batches then
    errors.blame("fit: %s runs training_step once for each device: manual optimization steps "
      .. "within it: write strategy = 'ddp'", errors.show(state.strategy))
  end
end

--- Optimization of the running batch. True when an optimizer has stepped; the second result is true
-- when the window ended.
function optimize.batch(state, is_last)
  local is_automatic = state.module.automatic_optimization
  if is_automatic ~= state.automatic then change_mode(state, is_automatic) end
  state.optimizer_steps:refresh()
  if is_automatic then return automatic(state, is_last) end
  return manual(state)
end

--- `self:manual_backward(loss)`.
function optimize.manual_backward(state, loss, ...)
  if not c.is_tensor(loss) or loss:numel() ~= 1 then
    errors.blame("manual_backward: the loss must be a tensor of one element: got %s",
      errors.show(loss))
  end
  if state.rerun:is_running() then
    state.rerun:note_loss(loss)
    return hook_calls.method(state, "backward", loss, ...)
  end
  state.nonfinite:check_loss(loss)
  local weight = 1.0
  if state.ranks.many then
    weight = state.window:weight_of()
    state.window:add(weight)
  end
  batch.backward(state, loss, weight, ...)
end

return optimize
