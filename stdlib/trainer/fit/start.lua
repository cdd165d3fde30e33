--- stdlib/trainer/fit/start.lua: the start of a fit: the sanity check, loading data, warnings about
--- parameters that will not train.
local c = require "ltrain.c"
local hook_calls = require "ltrain.trainer.hook_calls"
local eval_loop = require "ltrain.trainer.eval_loop"
local loop = require "ltrain.trainer.loop"
local ranks = require "ltrain.trainer.ranks.rank_setup"
local record = require "ltrain.trainer.run_files"
local results = require "ltrain.trainer.logged.results"
local sources = require "ltrain.trainer.data.sources"
local walk = require "ltrain.core.walk"

local SMALL <const> = 16384 -- elements of a module whose products need no warming up

-- What the first large product would wait for is made meanwhile, on a helper thread.
local function warm_up(state)
  local known, count = state.loop.parameters, 0
  for _, name in ipairs(known.list) do
    count = count + known.by_name[name]:numel()
    if count >= SMALL then return c.runtime.warm_up() end
  end
end

-- sync_batchnorm: layers take the statistics of all ranks' samples, within this fit.
local function mark_norms(state)
  local synced = state.ranks.many and state.trainer.options.sync_batchnorm or nil
  for _, entry in ipairs(walk.modules(state.module)) do
    if entry.module.track_statistics then rawset(entry.module, "_synced", synced) end
  end
end

-- The first validation batches, before anything is trained; nothing of it stays.
local function sanity_check(state)
  local trainer, progress = state.trainer, state.progress
  local count = trainer.num_sanity_val_steps
  if count == 0 or not state.hooks.validation_step or not sources.defined(state, "val")
    or state.resumed or progress.train_batches > 0 then
    return
  end
  loop.set_stage(state, "sanity_check")
  hook_calls.hook(state, "on_sanity_check_start")
  sources.load_val(state)
  local limited = {}
  for i, source in ipairs(state.data.val or {}) do limited[i] = sources.first(source, count) end
  local batches_before, rows_before = progress.eval_batches, progress.eval_rows
  eval_loop.run(state, "validation", limited)
  progress.eval_batches, progress.eval_rows = batches_before, rows_before
  hook_calls.hook(state, "on_sanity_check_end")
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

-- What on_train_start logs is of the first epoch; where that resumes, it comes again.
local function begin_results(state)
  state.loop.results = state.trainer.train_results
  if state.progress.in_epoch then
    results.forget(state.loop.results, "on_train_start")
  else
    results.reset(state.loop.results)
  end
end

--- Begins a fit, up to on_train_start; false when there are no batches to train on.
return function(state)
  local trainer = state.trainer
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
  state.validation:restart()
  state.resume_point:prepare()
  loop.set_stage(state, "train")
  hook_calls.hook(state, "on_train_start")
  return true
end
