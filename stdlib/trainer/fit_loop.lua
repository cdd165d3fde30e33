--- stdlib/trainer/fit_loop.lua: epochs over batches, with validation where it is due.
--
-- state.progress is the position; it is complete at a boundary, which comes after each batch (with
-- all that belongs to it: hooks, rows, validation) and after each epoch. Saves that callbacks ask
-- for, and Ctrl-C, are acted on there and nowhere else, so that a file resumes exactly.
local agree = require "ltrain.trainer.ranks.agree"
local batches = require "ltrain.trainer.data.batches"
local boundary = require "ltrain.trainer.boundary"
local c = require "ltrain.c"
local call = require "ltrain.trainer.call"
local eval_loop = require "ltrain.trainer.eval_loop"
local exchange = require "ltrain.trainer.ranks.exchange"
local metrics = require "ltrain.trainer.logged.metrics"
local loaders = require "ltrain.trainer.data.loaders"
local loop = require "ltrain.trainer.loop"
local optimize = require "ltrain.trainer.optimize"
local optimizers = require "ltrain.trainer.optimizers"
local parameters = require "ltrain.trainer.steps.parameters"
local ranks = require "ltrain.trainer.ranks.rank"
local record = require "ltrain.trainer.record"
local position = require "ltrain.trainer.data.position"
local replicas = require "ltrain.trainer.ranks.replicas"
local results = require "ltrain.trainer.logged.results"
local sources = require "ltrain.trainer.data.sources"
local walk = require "ltrain.core.walk"

local fit_loop = {}

local SMALL <const> = 16384 -- elements of a module whose products need no warming up

-- What a file that was saved in the last batch of an epoch, or at its end, has still to do.
local function has_rest(progress)
  return progress.in_epoch and (progress.pending or position.is_over(progress))
end

local function is_done(state)
  return not has_rest(state.progress) and state.stopping:ends_fit()
end

-- Whether validation comes after the batch that just ran.
local function validation_due(state, is_last)
  return state.validation:is_epoch_due() and sources.validates(state)
    and state.validation:is_batch_due(is_last)
end

local function end_validation(state)
  state.validation:restart()
  agree.to_stop(state)
end

-- What was still to be done of the validation at whose end the file was saved.
local function finish_validation(state)
  if not state.progress.called then return end
  call.saving_hook(state, "on_validation_end")
  end_validation(state)
end

local function validate(state)
  state.nonfinite:settle()
  sources.load_val_due(state)
  if not sources.validates(state) then return end -- the hook gave none
  if state.window:is_empty() and state.hooks.on_validation_model_zero_grad then
    call.method(state, "on_validation_model_zero_grad")
  end
  eval_loop.run(state, "validation", state.data.val)
  end_validation(state)
end

-- The row of the batch that has ended its window, once.
local function log_row(state)
  local pending = state.progress.pending
  if not pending.logs then return end
  pending.logs = nil
  if not state.trainer:logs_this_step() then return end
  local row = metrics.step_row(state)
  if not row then return end
  state.nonfinite:settle_shown()
  metrics.log(state, row, state.progress.stepped)
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

-- What follows a batch: validation, and what depends on it. `pending` says that it is still to be
-- done; a file that was saved meanwhile (by the script, or at Ctrl-C) has it, and resuming does it.
local function after_batch(state)
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

-- The first slice of the rank that has a sample; false without one.
local function first_of(parts)
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
  if slices then batch = first_of(batch) end
  current.outside = batch == false
  local leaves = false
  if batch then
    if not slices then batch = batches.transfer(state, batch, 1) end
    loop.set_batch(state, batch)
    leaves = call.hook(state, "on_train_batch_start", batch, index) == -1
  end
  return not agree.leaves(state, leaves)
end

-- All that belongs to one batch. False when the rest of the epoch is to be left out.
local function run_batch(state, batch, index, is_last)
  local trainer, progress, current = state.trainer, state.progress, state.loop
  trainer.is_last_batch = is_last
  results.begin_batch(current.results, batch ~= false)
  state.step_count:begin_batch()
  loop.begin_batch(state, "train", progress.train_batches)
  agree.enter(state)
  if not begin_batch(state, batch, index) then
    agree.leave(state)
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
    call.hook(state, "on_train_batch_end", current.outputs, current.batch, index)
  end
  agree.leave(state)
  log_row(state)
  return true
end

-- What was still to be done of the batch after which the file was saved.
local function finish_batch(state)
  local progress = state.progress
  if not progress.pending.validated then
    progress.eval_batches = progress.pending.eval_batches
    progress.eval_rows = progress.pending.eval_rows
  end
  log_row(state)
  after_batch(state)
  boundary.reached(state, "batch")
end

-- The pass over the training data; closed when what this returns is.
local function open_pass(state)
  local progress = state.progress
  local pass = loaders.open(state.data.train, "train", state.trainer.current_epoch, progress.batch,
    progress.train_batches, progress.loader)
  state.data.pass, progress.loader = pass, nil
  return pass, setmetatable({}, { __close = function()
    loaders.close(pass)
    state.data.pass = false
  end })
end

-- The rest of an epoch all of whose batches were run before the file was saved.
local function finish_batches(state)
  if position.opens_again(state) then
    local _, closing = open_pass(state)
    local _ <close> = closing
  end
  loop.between("batch", state.progress.train_batches)
  if state.progress.pending then finish_batch(state) end
  return true
end

-- Batches of the epoch, from where it stands. False when it was cut short.
local function run_batches(state)
  local trainer, progress = state.trainer, state.progress
  trainer.is_last_batch = progress.is_last or false
  if position.is_over(progress) then return finish_batches(state) end
  local pass, closing = open_pass(state)
  local _ <close> = closing
  if progress.pending then finish_batch(state) end
  while not state.stopping:ends_epoch() do
    state.resume_point:keep()
    local batch, index, is_last = boundary.next(state, pass)
    if batch == nil then
      trainer.is_last_batch = true
      return true
    end
    local continues = run_batch(state, batch, index, is_last)
    -- Nothing holds the batch while validation runs the collector: it would grow old.
    batch = nil -- luacheck: ignore
    loop.drop_batch(state)
    if continues then after_batch(state) end
    loop.end_batch(state)
    boundary.reached(state, "batch")
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
  report_skipped(state)
  state.step_count:report()
  metrics.publish(state)
  call.begin_saving(state, "on_train_epoch_end")
  call.hook(state, "on_train_epoch_end")
  local found = metrics.publish(state)
  call.late_epoch_end(state)
  call.end_saving(state)
  if state.automatic and complete then
    optimizers.step_schedulers(state, "epoch", true, trainer.current_epoch + 1)
  end
  if next(found.log) ~= nil then
    metrics.log(state, found.log, math.max(progress.stepped - 1, 0)) -- as metrics.step_of
  end
  agree.to_stop(state)
  -- An epoch cut short by max_steps or a stop is not complete: a later fit continues inside it.
  if complete then
    trainer.current_epoch = trainer.current_epoch + 1
    progress.batch, progress.in_epoch = 0, false
  else
    results.forget(state.loop.results, "on_train_epoch_end")
  end
  boundary.reached(state, "epoch")
end

local function begin_epoch(state)
  local progress = state.progress
  state.resume_point:keep()
  sources.reload_train(state)
  parameters.check(state, "at the start of an epoch")
  call.resolve(state)
  local is_first = state.loop.epochs == 0
  state.loop.epochs = state.loop.epochs + 1
  if progress.in_epoch then
    if progress.called and progress.called.hook == "on_train_epoch_start" then
      call.saving_hook(state, "on_train_epoch_start")
    end
    return
  end
  if not is_first then results.reset(state.loop.results) end
  progress.in_epoch, progress.batch, progress.skipped = true, 0, 0
  progress.is_last, progress.left_out, progress.nonfinite = false, false, 0
  progress.step_before = state.trainer.global_step
  state.trainer.is_last_batch = false
  call.saving_hook(state, "on_train_epoch_start")
end

-- An epoch of manual optimization in which the script forgot the step.
local function warn_of_no_step(state)
  state.trainer:warn("training_step: no optimizer stepped in an epoch, nothing is learnt: in "
    .. "manual optimization the script calls optimizer:zero_grad(), self:manual_backward(loss) and "
    .. "optimizer:step()")
end

local function run_epoch(state)
  begin_epoch(state)
  local complete = run_batches(state)
  if complete and not state.automatic and #state.optimizers > 0
    and state.trainer.global_step == state.progress.step_before then
    warn_of_no_step(state)
  end
  end_epoch(state, complete)
end

-- The first validation batches, before anything is trained; nothing of it stays.
local function sanity_check(state)
  local trainer, progress = state.trainer, state.progress
  local count = trainer.num_sanity_val_steps
  if count == 0 or not state.hooks.validation_step or not sources.defined(state, "val")
    or state.resumed or progress.train_batches > 0 then
    return
  end
  state.loop.sanity = true
  loop.set_stage(state, "sanity_check")
  call.hook(state, "on_sanity_check_start")
  sources.load_val(state)
  local limited = {}
  for i, source in ipairs(state.data.val or {}) do limited[i] = sources.first(source, count) end
  local batches_before, rows_before = progress.eval_batches, progress.eval_rows
  eval_loop.run(state, "validation", limited)
  progress.eval_batches, progress.eval_rows = batches_before, rows_before
  call.hook(state, "on_sanity_check_end")
  state.loop.sanity = false
  trainer:forget_metrics()
end

-- Those with weights of which none is trained are in evaluation mode on purpose, with their parts.
local function report_modes(state)
  local count, frozen = 0, {}
  for _, entry in ipairs(walk.modules(state.module)) do
    local module = entry.module
    if not module.training and not frozen[module] and module:is_frozen() then
      for _, part in ipairs(walk.modules(module)) do frozen[part.module] = true end
    end
    if not module.training and not frozen[module] then count = count + 1 end
  end
  if count > 0 then
    state.trainer:warn(("fit: %d modules are in evaluation mode and stay so: module:train() puts "
      .. "them all back"):format(count))
  end
end

-- What the first large product would wait for is made meanwhile, on a helper thread.
local function warm_up(state)
  local known, count = state.loop.parameters, 0
  for _, name in ipairs(known.list) do
    count = count + known.by_name[name]:numel()
    if count >= SMALL then return c.runtime.warm_up() end
  end
end

-- A second fit, or a resumed one, that has nothing left to do says why.
local function report_done(trainer)
  if trainer.global_step == 0 and trainer.current_epoch == 0 then return end
  trainer:say(("fit: nothing to do: epoch %d and step %d have been reached (max_epochs = %d, "
    .. "max_steps = %d)"):format(trainer.current_epoch, trainer.global_step, trainer.max_epochs,
    trainer.max_steps))
end

-- sync_batchnorm: layers take the statistics of all ranks' samples, within this fit.
local function mark_norms(state)
  local synced = state.ranks.many and state.trainer.options.sync_batchnorm or nil
  for _, entry in ipairs(walk.modules(state.module)) do
    if entry.module.track_statistics then rawset(entry.module, "_synced", synced) end
  end
end

-- What on_train_start logs is of the first epoch; where that resumes, it comes again.
local function begin_results(state)
  state.loop.results, state.loop.pending, state.loop.epochs = state.trainer.train_results, {}, 0
  state.validation:restart()
  if state.progress.in_epoch then
    results.forget(state.loop.results, "on_train_start")
  else
    results.reset(state.loop.results)
  end
end

-- Trains until a limit is reached; true unless there was nothing to do.
local function train(state)
  local trainer = state.trainer
  trainer.train_results = trainer.train_results or results.new(true)
  if is_done(state) then
    report_done(trainer)
    return false
  end
  warm_up(state)
  mark_norms(state)
  sanity_check(state)
  sources.load_fit(state)
  record.note_data(state)
  ranks.banner(state)
  if state.data.train.count == 0 then
    trainer:say("fit: limit_train_batches leaves no batches to train on")
    return false
  end
  report_modes(state)
  loop.between(state.progress.in_epoch and "batch" or "epoch", state.progress.train_batches)
  begin_results(state)
  state.resume_point:prepare()
  loop.set_stage(state, "train")
  call.hook(state, "on_train_start")
  while not is_done(state) do run_epoch(state) end
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
  if has_trained then call.hook(state, "on_train_end") end
end

--- After an error: a batch whose step was made before is done.
function fit_loop.fail(state)
  local trainer = state.trainer
  state.failed = true
  state.step_count:end_step()
  if state.automatic and state.resume_point:has_stepped() then
    state.window:close()
    state.nonfinite:end_window()
    end_step(state, state.loop.batch_idx, trainer.is_last_batch, true, true)
  end
end

return fit_loop
