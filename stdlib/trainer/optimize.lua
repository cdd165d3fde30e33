--- stdlib/trainer/optimize.lua: from a batch to changed weights.
--
-- A window is the batches between two optimizer steps. Its last batch runs within optimizer_step,
-- when the closure is called; the ones before add their gradients. Weights go into the seed of
-- backward, and the gradients are divided once by the window's sum of weights (steps/batch.lua): so
-- a short last batch, or a short last window, counts by its real size.
local agree = require "ltrain.trainer.ranks.agree"
local batch = require "ltrain.trainer.steps.batch"
local c = require "ltrain.c"
local call = require "ltrain.trainer.call"
local errors = require "ltrain.core.errors"
local late = require "ltrain.trainer.steps.late"
local nonfinite = require "ltrain.trainer.steps.nonfinite"
local parameters_of = require "ltrain.core.parameters_of"
local rerun = require "ltrain.trainer.steps.rerun"
local scaling = require "ltrain.trainer.steps.scaling"
local shared_gradients = require "ltrain.trainer.ranks.shared_gradients"
local slices = require "ltrain.trainer.ranks.slices"
local stepping = require "ltrain.trainer.steps.stepping"

local optimize = {}

--- The next batch begins a window.
function optimize.end_window(state)
  local window = state.loop.window
  window.batches, window.used, window.weight, window.cleared = 0, 0, 0.0, false
  window.spoilt, window.loss, window.kept, window.suspects = nil, nil, nil, nil
end

--- Begins the windows of a fit. From here on each step of an optimizer, whoever asks for it, is
-- counted, and in manual optimization announced by the hook.
function optimize.prepare(state)
  state.loop.window = {}
  optimize.end_window(state)
  state.loop.random_before = {}
  shared_gradients.prepare(state)
  late.begin_batch(state)
  scaling.prepare(state)
  state.loop.closure = function() return optimize.closure(state) end
  stepping.prepare(state)
end

--- Lets go of the optimizers when the fit is over.
function optimize.release(state)
  slices.release(state)
  stepping.release(state)
end

-- Makes the gradients those of the window's mean loss, on all ranks.
local function complete(state, optimizer)
  local window = state.loop.window
  if state.ranks.slices then window.weight = slices.combine(state) end
  if state.ranks.many then
    batch.zero_grad(state, optimizer)
    window.used = shared_gradients.reduce(state, optimizer, window.weight) > 0 and 1 or 0
  elseif window.used > 0 then
    state.strategy:reduce_gradients(optimizer, window.weight, 0, window.weight)
  end
  window.weight = 1.0
end

local function has_gradients(optimizer)
  for _, parameter in ipairs(parameters_of(optimizer)) do
    if parameter.grad then return true end
  end
  return false
end

-- A call after the first: with other batches in the window the gradients add up, as in Lightning,
-- unless the script has cleared them; else the batch has them for itself.
local function begin_again(state, optimizer)
  local window = state.loop.window
  scaling.check_closure(state)
  window.again = true
  if window.batches > 0 and state.ranks.many and not state.strategy:is_replicated "gradient" then
    errors.blame("optimizer_step: the closure was called again in a window of "
      .. "accumulate_grad_batches = %d: the gradients of the other batches are reduced already "
      .. "under %s", state.trainer.accumulate_grad_batches, errors.show(state.strategy))
  end
  if window.batches > 0 and has_gradients(optimizer) then return end
  window.used, window.weight, window.cleared = 0, 0.0, window.batches > 0
end

--- What optimizer_step hands to the optimizer: runs training_step and backward of the window's last
--- batch; returns the loss. It may be called again, with other weights.
function optimize.closure(state)
  local window, optimizer = state.loop.window, state.optimizers[1]
  if not window.stepping then
    errors.blame("optimizer_step: the closure was called after optimizer_step had ended")
  end
  if window.called then begin_again(state, optimizer) end
  window.called = true
  if not state.ranks.slices then c.runtime.rng_get(state.loop.random_before) end
  local loss = batch.run(state, window.batches == 0)
  complete(state, optimizer)
  return loss
end

local function step_optimizer(state)
  local window = state.loop.window
  window.stepping, window.called = true, false
  call.method(state, "optimizer_step", state.trainer.current_epoch, state.loop.batch_idx,
    state.optimizers[1], state.loop.closure)
  window.stepping, window.again = false, false
  stepping.count(state)
  if not window.called then
    errors.blame("optimizer_step: the closure was not called: it runs training_step and backward: "
      .. "give it to optimizer:step(closure), or call it")
  end
  return late.has_stepped(state)
end

-- A batch that does not end its window.
local function gather(state)
  batch.run(state, false)
  local optimizer = state.optimizers[1]
  if optimizer then nonfinite.look_in_window(state, optimizer) end
end

-- Automatic optimization of the running batch.
local function automatic(state, is_last)
  local window, k = state.loop.window, state.trainer.accumulate_grad_batches
  local ends, optimizer = is_last or (state.loop.batch_idx + 1) % k == 0, state.optimizers[1]
  local steps = false
  if not ends then
    c.runtime.rng_get(state.loop.random_before)
    gather(state)
    window.batches = window.batches + 1
    return false, false
  elseif optimizer then
    steps = step_optimizer(state)
  else
    batch.run(state, window.batches == 0)
    if state.ranks.many then agree.step(state, 0, 0) end
  end
  optimize.end_window(state)
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
  state.loop.window.last, state.loop.window.kept, state.loop.window.loss = nil, nil, nil
  c.runtime.rng_get(state.loop.random_before)
  local _ <close> = batch.watch(state)
  local _, outputs = batch.training_step(state)
  state.loop.outputs = outputs
  scaling.end_batch(state)
  local loss = type(outputs) == "table" and outputs.loss or outputs
  if type(loss) == "userdata" then
    batch.check_loss(state, loss)
    nonfinite.check_loss(state, loss, true)
  end
  state.loop.has_stepped = true
  if state.ranks.many then agree.step(state, 0, 0) end
  return late.has_stepped(state), true
end

-- A script may change from one to the other between batches.
local function change_mode(state, is_automatic)
  if state.loop.window.batches > 0 then
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
  end
end

--- Optimization of the running batch. True when an optimizer has stepped; the second result is true
-- when the window ended.
function optimize.batch(state, is_last)
  local is_automatic = state.module.automatic_optimization
  if is_automatic ~= state.automatic then change_mode(state, is_automatic) end
  stepping.refresh(state)
  if is_automatic then return automatic(state, is_last) end
  return manual(state)
end

--- `self:manual_backward(loss)`.
function optimize.manual_backward(state, loss, ...)
  if not c.is_tensor(loss) or loss:numel() ~= 1 then
    errors.blame("manual_backward: the loss must be a tensor of one element: got %s",
      errors.show(loss))
  end
  if state.loop.rerunning then
    rerun.note_loss(state, loss)
    return call.method(state, "backward", loss, ...)
  end
  nonfinite.check_loss(state, loss)
  local weight = 1.0
  if state.ranks.many then
    local window = state.loop.window
    weight = batch.share_of(state)
    window.used, window.weight = window.used + 1, window.weight + weight
  end
  batch.backward(state, loss, weight, ...)
end

return optimize
