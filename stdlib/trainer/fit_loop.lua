--- stdlib/trainer/fit_loop.lua: the fit loop: epochs over training batches, with validation where
--- it is due.
--
-- state.progress is the position; it is complete at a boundary, which comes after each batch (with
-- all that belongs to it: hooks, rows, validation) and after each epoch. Saves that callbacks ask
-- for, and Ctrl-C, are acted on there and nowhere else, so that a file resumes exactly.
local batch_boundary = require "ltrain.trainer.batch_boundary"
local hook_calls = require "ltrain.trainer.hook_calls"
local exchange = require "ltrain.trainer.ranks.exchange"
local metrics = require "ltrain.trainer.logged.metrics"
local loop = require "ltrain.trainer.loop"
local optimizers = require "ltrain.trainer.optimizers"
local parameters = require "ltrain.trainer.steps.parameters"
local position = require "ltrain.trainer.data.data_position"
local replicas = require "ltrain.trainer.ranks.replica_checks"
local results = require "ltrain.trainer.logged.results"
local sources = require "ltrain.trainer.data.sources"
local start = require "ltrain.trainer.fit.start"
local train_batch = require "ltrain.trainer.fit.train_batch"

local fit_loop = {}

-- What a file that was saved in the last batch of an epoch, or at its end, has still to do.
local function has_unfinished_epoch(progress)
  return progress.in_epoch and (progress.pending or position.is_over(progress))
end

local function is_done(state)
  return not has_unfinished_epoch(state.progress) and state.stopping:ends_fit()
end

local function resume_batch(state)
  train_batch.resume(state)
  batch_boundary.reached(state, "batch")
end

-- The rest of an epoch all of whose batches were run before the file was saved.
local function finish_epoch_batches(state)
  if position.opens_again(state) then
    local _, closing = sources.open_train(state)
    local _ <close> = closing
  end
  loop.between("batch", state.progress.train_batches)
  if state.progress.pending then resume_batch(state) end
  return true
end

-- What measures the batches of this rank, of several.
local function step_times_of(state)
  if not state.ranks.many then return nil end
  state.step_times = state.step_times
    or require "ltrain.trainer.ranks.StepTimes".new(state)
  return state.step_times
end

-- Batches of the epoch, from where it stands. False when it was cut short.
local function run_batches(state)
  local trainer, progress = state.trainer, state.progress
  trainer.is_last_batch = progress.is_last or false
  if position.is_over(progress) then return finish_epoch_batches(state) end
  local pass, closing = sources.open_train(state)
  local _ <close> = closing
  if progress.pending then resume_batch(state) end
  local times = step_times_of(state)
  while not state.stopping:ends_epoch() do
    state.resume_point:keep()
    if times then times:begin_batch() end
    local batch, index, is_last = batch_boundary.next(state, pass)
    if batch == nil then
      trainer.is_last_batch = true
      return true
    end
    local continues = train_batch.run(state, batch, index, is_last)
    -- Nothing holds the batch while validation runs the collector: it would grow old.
    batch = nil -- luacheck: ignore
    loop.drop_batch(state)
    if times then times:end_batch() end
    if continues then train_batch.follow_up(state) end
    loop.end_batch(state)
    batch_boundary.reached(state, "batch")
    if not continues or is_last then return true end
  end
  return state.data.train.count == progress.batch
end

local function report_skipped(state)
  local progress, trainer = state.progress, state.trainer
  local parts, all = {}, true
  for i, skipped in ipairs(state.strategy:all_gather(progress.skipped)) do
    if skipped > 0 then
      parts[#parts + 1] = ("%s%d of %d steps"):format(
        state.ranks.many and ("rank %d skipped "):format(i - 1) or "", skipped, progress.batch)
    end
    all = all and skipped == progress.batch
  end
  if #parts == 0 then return end
  trainer:say(("%sepoch %d: %s%s: training_step returned nil, or weight 0"):format(
    all and "warning: nothing was learnt in " or "", trainer.current_epoch,
    table.concat(parts, ", "), state.ranks.many and "" or " skipped"))
end

local function end_epoch(state, complete)
  local trainer, progress = state.trainer, state.progress
  state.resume_point:forget()
  state.nonfinite:settle()
  if state.late_rows then state.late_rows:settle() end
  report_skipped(state)
  state.step_count:report()
  metrics.publish(state)
  hook_calls.begin_saving(state, "on_train_epoch_end")
  hook_calls.hook(state, "on_train_epoch_end")
  local found = metrics.publish(state)
  hook_calls.late_epoch_end(state)
  hook_calls.end_saving(state)
  if state.automatic and complete then
    optimizers.step_schedulers(state, "epoch", true, trainer.current_epoch + 1)
  end
  if next(found.log) ~= nil then
    metrics.log(state, found.log, math.max(progress.stepped - 1, 0)) -- as metrics.step_of
  end
  state.stopping:agree()
  -- An epoch cut short by max_steps or a stop is not complete: a later fit continues inside it.
  if complete then
    trainer.current_epoch = trainer.current_epoch + 1
    progress.batch, progress.in_epoch = 0, false
  else
    results.forget(state.loop.results, "on_train_epoch_end")
  end
  batch_boundary.reached(state, "epoch")
end

local function begin_epoch(state, is_first)
  local progress = state.progress
  state.resume_point:keep()
  sources.reload_train(state)
  parameters.check(state, "at the start of an epoch")
  hook_calls.resolve(state)
  if progress.in_epoch then
    if progress.called and progress.called.hook == "on_train_epoch_start" then
      hook_calls.saving_hook(state, "on_train_epoch_start")
    end
    return
  end
  if not is_first then results.reset(state.loop.results) end
  progress.in_epoch, progress.batch, progress.skipped = true, 0, 0
  progress.is_last, progress.left_out, progress.nonfinite = false, false, 0
  progress.step_before = state.trainer.global_step
  state.trainer.is_last_batch = false
  hook_calls.saving_hook(state, "on_train_epoch_start")
end

-- An epoch of manual optimization in which the script forgot the step.
local function warn_of_no_step(state)
  state.trainer:warn("training_step: no optimizer stepped in an epoch, nothing is learnt: in "
    .. "manual optimization the script calls optimizer:zero_grad(), self:manual_backward(loss) and "
    .. "optimizer:step()")
end

local function run_epoch(state, is_first)
  begin_epoch(state, is_first)
  local complete = run_batches(state)
  if complete and not state.automatic and #state.optimizers > 0
    and state.trainer.global_step == state.progress.step_before then
    warn_of_no_step(state)
  end
  end_epoch(state, complete)
end

-- A second fit, or a resumed one, that has nothing left to do says why.
local function report_nothing_to_do(trainer)
  if trainer.global_step == 0 and trainer.current_epoch == 0 then return end
  trainer:say(("fit: nothing to do: epoch %d and step %d have been reached (max_epochs = %d, "
    .. "max_steps = %d)"):format(trainer.current_epoch, trainer.global_step, trainer.max_epochs,
    trainer.max_steps))
end

-- Trains until a limit is reached; true unless there was nothing to do.
local function train(state)
  local trainer = state.trainer
  trainer.train_results = trainer.train_results or results.new(true)
  if is_done(state) then
    report_nothing_to_do(trainer)
    return false
  end
  if not start(state) then return false end
  local is_first = true
  while not is_done(state) do
    run_epoch(state, is_first)
    is_first = false
  end
  return true
end

--- Trains. The optimizers are there, a checkpoint has been loaded.
function fit_loop.run(state)
  local strategy = state.strategy
  local has_trained = train(state)
  if has_trained then
    parameters.check(state, "at the end of fit")
    replicas.compare(state)
  end
  exchange("end of training", strategy.end_training, strategy, state.optimizers)
  -- A strategy of several ranks may have put whole parameters in the place of parts.
  if state.ranks.many then parameters.follow(state) end
  if has_trained then hook_calls.hook(state, "on_train_end") end
end

--- After an error.
function fit_loop.fail(state)
  state.failed = true
  train_batch.fail(state)
end

return fit_loop
