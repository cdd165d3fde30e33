--- stdlib/trainer/optimize.lua: from a batch to changed weights.
--
-- A window is the batches between two optimizer steps. Weights go into the seed of backward, never
-- onto finished gradients: a batch of n samples is seeded with n/B (B: the nominal batch size), and
-- the gradients are divided once by the window's sum of n/B. So a short last batch, or a short last
-- window, counts by its real size. A window of one batch needs neither: n/B cancels.
local agree = require "ltrain.trainer.ranks.agree"
local batches = require "ltrain.trainer.data.batches"
local c = require "ltrain.c"
local call = require "ltrain.trainer.call"
local errors = require "ltrain.core.errors"
local loop = require "ltrain.trainer.loop"
local parameters_of = require "ltrain.core.parameters_of"
local replicas = require "ltrain.trainer.ranks.replicas"
local shared_gradients = require "ltrain.trainer.ranks.shared_gradients"
local slices = require "ltrain.trainer.ranks.slices"
local told = require "ltrain.trainer.ranks.told"

local optimize = {}

local INF <const> = math.huge

local function divide_gradients(optimizer, weight)
  local _ <close> = c.no_grad()
  for _, parameter in ipairs(parameters_of(optimizer)) do
    local grad = parameter.grad
    if grad then grad:mul_(1.0 / weight) end
  end
end

--- Begins the windows of a fit. From here on each step of an optimizer, whoever asks for it, is
-- counted, and in manual optimization announced by the hook.
function optimize.prepare(state)
  local trainer = state.trainer
  state.window = { batches = 0, used = 0, weight = 0.0 }
  shared_gradients.prepare(state)
  state.closure = function() return optimize.closure(state) end
  for _, optimizer in ipairs(state.optimizers) do
    if optimizer.use_names_of then optimizer:use_names_of(state.module) end
    optimizer._before_step = function()
      replicas.check_places(state)
      if not state.automatic then
        shared_gradients.sync(state, optimizer)
        call.hook(state, "on_before_optimizer_step", optimizer)
      end
      state.updating = true
    end
    optimizer._after_step = function()
      trainer.global_step = trainer.global_step + 1
      state.updating = false
      shared_gradients.stepped(state, optimizer)
      replicas.after_step(state)
    end
    optimizer._tell_stray = function(text) told.add(state, text) end
  end
  trainer.optimizers, trainer.lr_scheduler_configs = state.optimizers, state.schedulers
end

--- Lets go of the optimizers when the fit is over.
function optimize.release(state)
  slices.release(state)
  for _, optimizer in ipairs(state.optimizers or {}) do
    optimizer._before_step, optimizer._after_step, optimizer._tell_stray = nil, nil, nil
  end
end

local function place(state)
  return ("epoch %d, batch %d, step %d"):format(state.trainer.current_epoch, state.batch_idx,
    state.trainer.global_step)
end

local function check_loss(state, loss)
  if loss:numel() ~= 1 then
    errors.blame("training_step: the loss must have one element: got %s", errors.show(loss))
  elseif state.automatic and not loss.requires_grad then
    errors.blame("training_step: the loss depends on no parameter that requires grad")
  end
end

-- On the host looking costs nothing; on a device it is done where a value is shown anyway.
local function check_finite(state, loss)
  local trainer = state.trainer
  if state.strategy.root_device ~= "cpu" and not trainer.options.detect_anomaly
    and not trainer:logs_this_step() then
    return
  end
  local value = loss:item()
  if value ~= value or value == INF or value == -INF then
    local op, line = c.runtime.made_at(loss)
    errors.blame("training_step: the loss is %s%s (%s): the weights are those before this step",
      value ~= value and "nan" or tostring(value),
      op and (", made by %s at %s"):format(op, line) or "", place(state))
  end
end

-- What a batch says that it weighs, as a number.
local function check_weight(weight)
  local number = weight
  if c.is_tensor(weight) and weight:numel() == 1 then number = weight:item() end
  if type(number) ~= "number" or not (number >= 0 and number < INF) then
    errors.blame("training_step: weight must be a number, at least 0 and finite: got %s",
      errors.show(weight))
  end
  return number
end

-- loss and sample weight out of what training_step returned.
local function read_outputs(state, count, outputs)
  if outputs == nil then
    if count == 0 and not state.has_stepped then
      errors.blame("%s: nothing was returned (%s): return the loss, or nil to skip a batch",
        state.hooks.training_step_end and "training_step_end" or "training_step", place(state))
    end
    return nil
  end
  local loss, weight = outputs, nil
  if type(outputs) == "table" then loss, weight = outputs.loss, outputs.weight end
  if not c.is_tensor(loss) then
    errors.blame("training_step: return the loss (a tensor), a table with loss, or nil: got %s",
      type(outputs) == "table" and ("a table with loss = %s"):format(errors.show(loss))
      or errors.show(outputs))
  end
  -- Later ones are of the same make; backward refuses what is not.
  if not state.has_stepped then check_loss(state, loss) end
  if weight ~= nil then weight = check_weight(weight) end
  return loss, weight
end

local function packed(...) return select("#", ...), (...) end

-- The batch size that is a weight of 1: the same on all ranks, however they share a batch.
local function nominal_batch(state)
  local source = state.train_source
  local parts = state.slices and state.slices.all or state.trainer.world_size
  local global = type(source.loader) == "table" and source.loader.global_batch_size
  if global then return global / parts end
  return source.batch_size or state.many_ranks and 1 or nil
end

-- This batch's share of the nominal batch.
local function share_of(state, weight)
  weight = weight or batches.count(state)
  if not weight then return 1.0 end
  local nominal = state.nominal_batch
  if not nominal then
    nominal = nominal_batch(state) or weight
    state.nominal_batch = nominal
  end
  return weight / nominal
end

-- Once a window: what is left of the last step is not this window's.
local function zero_grad(state, optimizer)
  if state.window.cleared or not optimizer then return end
  state.window.cleared = true
  call.hook(state, "on_before_zero_grad", optimizer)
  call.method(state, "optimizer_zero_grad", state.trainer.current_epoch, state.batch_idx,
    optimizer)
end

local function backward(state, loss, weight)
  call.hook(state, "on_before_backward", loss)
  if state.many_ranks then
    state.ddp:backward(loss, weight)
  elseif weight == 1.0 then
    call.method(state, "backward", loss)
  else
    call.method(state, "backward", loss * weight)
  end
  call.hook(state, "on_after_backward")
end

-- Collectives of a step, which all ranks that are in it walk back.
local function leave_step(state)
  if not state.many_ranks then return end
  zero_grad(state, state.optimizers[1]) -- there may be gradients although there is no loss
  c.dist.end_step(true)
end

-- training_step and backward of one batch; `alone`: the window has no other. The loss, and what it
-- weighs; nil where there was none.
local function run_batch(state, alone)
  local window, optimizer = state.window, state.optimizers[1]
  if state.outside then return nil end
  if state.many_ranks then c.dist.begin_step() end
  local count, outputs = packed(call.step(state, "training_step", state.batch, state.batch_idx))
  local loss, weight = read_outputs(state, count, outputs)
  state.outputs = outputs
  if loss == nil or weight == 0 then
    state.progress.skipped = state.progress.skipped + 1
    leave_step(state)
    return nil
  end
  check_finite(state, loss)
  state.has_stepped = true
  if not optimizer then return loss end
  zero_grad(state, optimizer)
  weight = alone and not state.many_ranks and 1.0 or share_of(state, weight)
  backward(state, loss, weight)
  leave_step(state)
  window.used, window.weight = window.used + 1, window.weight + weight
  return loss, weight
end

-- Makes the window's gradients those of its mean loss, and clips them.
local function complete(state)
  local optimizer, window, options = state.optimizers[1], state.window, state.trainer.options
  if window.weight ~= 1.0 then divide_gradients(optimizer, window.weight) end
  call.hook(state, "on_before_optimizer_step", optimizer)
  local clip = options.gradient_clip_val
  if clip and clip > 0 or state.hooks.configure_gradient_clipping then
    call.method(state, "configure_gradient_clipping", optimizer, clip,
      options.gradient_clip_algorithm)
  end
end

-- The same once a slice (deterministic = "world").
local function run_slices(state)
  local first, loss = state.slices.first, nil
  for i, batch in ipairs(state.slice_batches) do
    if batch then
      slices.enter(state, i)
      loop.begin_part(first + i - 1, "train", state.progress.train_batches - 1)
      state.batch, state.batch_count = batches.transfer(state, batch, 1), nil
      local own, weight = run_batch(state, false)
      loss = own or loss
      slices.leave(state, i, weight)
    end
  end
  slices.track(state)
  return loss
end

-- training_step and backward of the running batch, whole or in slices.
local function run_part(state, alone)
  if state.slices then return run_slices(state) end
  return (run_batch(state, alone))
end

--- What an optimizer runs before it steps. The first time the gradients are there already; an
-- optimizer that asks again (line searches) gets the batch computed anew.
function optimize.closure(state)
  local window = state.window
  if not window.ready then
    window.used, window.weight, window.cleared = 0, 0.0, false
    window.loss = run_part(state, true)
    if state.slices then window.weight = slices.combine(state) end
    if state.many_ranks then
      shared_gradients.reduce(state, state.optimizers[1], window.weight)
      window.weight = 1.0
    end
  end
  window.ready = false
  complete(state)
  return window.loss
end

local function step_optimizer(state)
  local window, before = state.window, state.trainer.global_step
  window.ready = true
  call.method(state, "optimizer_step", state.trainer.current_epoch, state.batch_idx,
    state.optimizers[1], state.closure)
  window.ready, window.loss = false, nil
  return state.trainer.global_step > before
end

--- Automatic optimization of the running batch. True when the optimizer has stepped; the second
-- result is true when the window ended.
function optimize.automatic(state, is_last)
  local window, k = state.window, state.trainer.accumulate_grad_batches
  local ends = is_last or (state.batch_idx + 1) % k == 0
  window.loss = run_part(state, ends and window.batches == 0)
  window.batches = window.batches + 1
  if not ends then
    window.loss = nil
    return false, false
  end
  local optimizer = state.optimizers[1]
  if state.slices and optimizer then window.weight = slices.combine(state) end
  if state.many_ranks and optimizer then
    zero_grad(state, optimizer)
    window.used = shared_gradients.reduce(state, optimizer, window.weight) > 0 and 1 or 0
    window.weight = 1.0
  elseif state.many_ranks then
    agree.step(state, 0, 0)
  end
  local steps = window.used > 0
  if steps and optimizer then steps = step_optimizer(state) end
  window.batches, window.used, window.weight, window.loss = 0, 0, 0.0, nil
  window.cleared = false
  return steps, true
end

--- Manual optimization: the step does it all.
function optimize.manual(state)
  local before = state.trainer.global_step
  if state.outside then
    errors.blame("training_step: rank %d has no data left while others have, and manual "
      .. "optimization cannot step without it: give all ranks equally many batches (drop_last = "
      .. "true or tail = 'wrap' of the DataLoader does)",
      state.trainer.global_rank)
  end
  state.window.last = nil
  local _, outputs = packed(call.step(state, "training_step", state.batch, state.batch_idx))
  state.outputs = outputs
  local loss = type(outputs) == "table" and outputs.loss or outputs
  if type(loss) == "userdata" then
    check_loss(state, loss)
    check_finite(state, loss)
  end
  state.has_stepped = true
  if state.many_ranks then agree.step(state, 0, 0) end
  return state.trainer.global_step > before, true
end

--- `self:manual_backward(loss)`.
function optimize.manual_backward(state, loss, ...)
  if not c.is_tensor(loss) or loss:numel() ~= 1 then
    errors.blame("manual_backward: the loss must be a tensor of one element: got %s",
      errors.show(loss))
  end
  check_finite(state, loss)
  call.hook(state, "on_before_backward", loss)
  if state.many_ranks then
    local window, weight = state.window, share_of(state)
    window.used, window.weight = window.used + 1, window.weight + weight
    if weight ~= 1.0 then loss = loss * weight end
  end
  call.method(state, "backward", loss, ...)
  call.hook(state, "on_after_backward")
end

return optimize
