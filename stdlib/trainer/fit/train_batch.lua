--- stdlib/trainer/fit/train_batch.lua: runs one training batch of a fit: hooks, training_step,
--- optimizer step, validation if due.
local consensus = require "ltrain.trainer.ranks.consensus"
local batches = require "ltrain.trainer.data.batches"
local hook_calls = require "ltrain.trainer.hook_calls"
local eval_loop = require "ltrain.trainer.eval_loop"
local loop = require "ltrain.trainer.loop"
local metrics = require "ltrain.trainer.logged.metrics"
local optimize = require "ltrain.trainer.optimize"
local optimizers = require "ltrain.trainer.optimizers"
local results = require "ltrain.trainer.logged.results"
local sources = require "ltrain.trainer.data.sources"

local train_batch = {}

-- The first slice of the rank that has a sample; false without one.
local function first_present(parts)
  for _, part in ipairs(parts) do
    if part then return part end
  end
  return false
end

-- The batch goes where the module is, and its hooks hear of it. `false`: others have a sample in
-- this step, this rank has none: it runs no hooks and no step, and takes part in what all do. False
-- when the step is left out, on all ranks.
local function begin_batch(state, batch, index)
  local current, slices = state.loop, state.ranks.slices
  loop.set_batch(state, false, index)
  current.slice_batches = slices and batch
  if slices then batch = first_present(batch) end
  current.outside = batch == false
  local leaves = false
  if batch then
    if not slices then batch = batches.transfer(state, batch, 1) end
    loop.set_batch(state, batch)
    leaves = hook_calls.hook(state, "on_train_batch_start", batch, index) == -1
  end
  return not consensus.leaves(state, leaves)
end

-- Schedulers that need no metric, after the step of a batch.
local function step_schedulers(state, pending)
  if not state.automatic then return end
  if pending.stepped and #state.schedulers > 0 then
    state.step_count:move_schedulers(optimizers.step_schedulers, state, "step", false,
      state.progress.stepped + 1)
  end
  if pending.is_last then
    if #state.schedulers > 0 then state.step_count:settle() end
    optimizers.step_schedulers(state, "epoch", false, state.trainer.current_epoch + 1)
  end
  pending.schedules = nil
end

-- Keeps what the step has logged until it has come from the device; false: write it now.
local function logs_later(state)
  if state.strategy.root_device == "cpu" or state.ranks.many then return false end
  local values = metrics.step_values(state)
  if not values then return true end
  state.late_rows = state.late_rows or require "ltrain.trainer.logged.LateRows".new(state,
    function(row, step) metrics.log(state, row, step) end)
  return state.late_rows:add(values, state.progress.stepped)
end

-- The row of the batch that has ended its window, once.
local function log_row(state)
  local pending = state.progress.pending
  if not pending.logs then return end
  pending.logs = nil
  if not state.trainer:logs_this_step() then return end
  if logs_later(state) then return end
  local row = metrics.step_row(state)
  if not row then return end
  state.nonfinite:settle_shown()
  metrics.log(state, row, state.progress.stepped)
end

-- The batch has made its step: from here on a resumed run does what is pending, and the next.
local function end_step(state, index, is_last, stepped, ended)
  local progress, pending = state.progress, state.loop.pending
  progress.batch, progress.is_last = index + 1, is_last
  pending.is_last, pending.stepped, pending.schedules = is_last, stepped, true
  pending.logs, pending.validated = ended, nil
  pending.eval_batches, pending.eval_rows = progress.eval_batches, progress.eval_rows
  progress.pending = pending
  state.resume_point:end_batch()
end

--- Hooks, the step and the row of one batch. False when the rest of the epoch is to be left out.
function train_batch.run(state, batch, index, is_last)
  local trainer, progress, current = state.trainer, state.progress, state.loop
  trainer.is_last_batch = is_last
  results.begin_batch(current.results, batch ~= false)
  if state.late_rows then state.late_rows:begin_batch() end
  state.step_count:begin_batch()
  loop.begin_batch(state, "train", progress.train_batches)
  consensus.enter(state)
  if not begin_batch(state, batch, index) then
    consensus.leave(state)
    progress.left_out, progress.is_last = true, is_last
    state.resume_point:forget()
    return false
  end
  progress.train_batches = progress.train_batches + 1
  state.resume_point:begin_batch()
  local stepped, ended = optimize.batch(state, is_last)
  end_step(state, index, is_last, stepped, ended)
  step_schedulers(state, progress.pending)
  if not current.outside then
    hook_calls.hook(state, "on_train_batch_end", current.outputs, current.batch, index)
  end
  consensus.leave(state)
  log_row(state)
  return true
end

-- Whether validation comes after the batch that just ran.
local function validation_due(state, is_last)
  return state.validation:is_epoch_due() and sources.validates(state)
    and state.validation:is_batch_due(is_last)
end

local function end_validation(state)
  state.validation:restart()
  state.stopping:agree()
end

-- What was still to be done of the validation at whose end the file was saved.
local function finish_validation(state)
  if not state.progress.called then return end
  hook_calls.saving_hook(state, "on_validation_end")
  end_validation(state)
end

local function validate(state)
  state.nonfinite:settle()
  if state.late_rows then state.late_rows:settle() end
  sources.load_val_due(state)
  if not sources.validates(state) then return end -- the hook gave none
  if state.window:is_empty() and state.hooks.on_validation_model_zero_grad then
    hook_calls.method(state, "on_validation_model_zero_grad")
  end
  eval_loop.run(state, "validation", state.data.val)
  end_validation(state)
end

--- What follows a batch: validation, and what depends on it. progress.pending says that it is still
--- to be done; a file that was saved meanwhile (by the script, or at Ctrl-C) has it, and resuming
--- does it.
function train_batch.follow_up(state)
  local progress = state.progress
  local pending = progress.pending
  if pending.schedules then step_schedulers(state, pending) end
  if pending.validated then
    finish_validation(state)
  elseif validation_due(state, pending.is_last) then
    validate(state)
  end
  if state.automatic and pending.stepped and #state.schedulers > 0 then
    optimizers.step_schedulers(state, "step", true, progress.stepped + 1)
  end
  if pending.stepped then state.step_count:end_batch() end
  progress.pending = nil
end

--- What was still to be done of the batch after which the file was saved.
function train_batch.resume(state)
  local progress, pending = state.progress, state.progress.pending
  if not pending.validated then
    progress.eval_batches, progress.eval_rows = pending.eval_batches, pending.eval_rows
  end
  log_row(state)
  train_batch.follow_up(state)
end

--- The fit fails: a batch whose step was made is done.
function train_batch.fail(state)
  state.step_count:end_step()
  if state.late_rows then state.late_rows:fail() end
  if state.automatic and state.resume_point:has_stepped() then
    state.window:close()
    state.nonfinite:end_window()
    end_step(state, state.loop.batch_idx, state.trainer.is_last_batch, true, true)
  end
end

return train_batch
