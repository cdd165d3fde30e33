--- stdlib/trainer/saving/checkpoint.lua: builds a checkpoint of all state that a run needs to
--- resume, and restores it.
--
-- A checkpoint is a table; how it becomes a file is the strategy's checkpoint_io's affair.
local c = require "ltrain.c"
local checkpoint_parts = require "ltrain.trainer.saving.checkpoint_parts"
local class = require "ltrain.core.class"
local data_position = require "ltrain.trainer.data.data_position"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local exchange = require "ltrain.trainer.ranks.exchange"
local hook_calls = require "ltrain.trainer.hook_calls"
local module_modes = require "ltrain.trainer.saving.module_modes"
local parameters = require "ltrain.trainer.steps.parameters"
local parts = require "ltrain.core.parts"
local partial_metrics = require "ltrain.trainer.logged.partial_metrics"
local walk = require "ltrain.core.walk"

local checkpoint = {}

-- The strategy's own state: what this rank has of it, or complete on rank 0.
local function strategy_state(state, in_parts)
  local strategy, saved = state.strategy, state.strategy:state_dict(state.optimizers)
  if saved and not in_parts and not checkpoint_parts.are_here(state) then
    saved = require "ltrain.dist.gather_parts"(saved)
  end
  return saved and { class = class.of(strategy).__name, state = saved }
end

-- What is written of the module and, with `optimizers`, of these: what this rank has, or complete
-- on rank 0, gathered from all ranks where the strategy has it in parts; other ranks get nothing
-- then. `own_tensors`: of the optimizers: their next step changes them.
local function collect(state, optimizers, in_parts, own_tensors)
  local strategy, held = state.strategy, { optimizers = {} }
  local of_module = in_parts and strategy.module_parts or strategy.module_state
  local of_optimizer = in_parts and strategy.optimizer_parts or strategy.optimizer_state
  held.module = of_module(strategy, state.module)
  for i, optimizer in ipairs(optimizers and state.optimizers or {}) do
    held.optimizers[i] = of_optimizer(strategy, optimizer, own_tensors)
  end
  held.strategy = optimizers and strategy_state(state, in_parts) or nil
  return held
end

local function scheduler_states(state)
  local list = {}
  for i, config in ipairs(state.schedulers) do list[i] = config.scheduler:state_dict() end
  return list
end

-- Two callbacks may be of one class: then they need keys of their own.
local function callback_states(trainer, where)
  local states = {}
  for _, callback in ipairs(trainer.callbacks) do
    local key, saved = callback:state_key(), callback:state_dict()
    if saved ~= nil then
      if states[key] ~= nil then
        errors.blame("%s: two callbacks have the state_key '%s': define state_key", where, key)
      end
      states[key] = saved
    end
  end
  return states
end

--- Raises before there is something to lose when a file of this fit could not hold the states of
--- its callbacks.
function checkpoint.check_callbacks(state)
  local keys, saves, twice = {}, false, false
  for _, callback in ipairs(state.trainer.callbacks) do
    local key = callback:state_key()
    twice, keys[key] = twice or keys[key], true
    saves = saves or callback.saves_checkpoints
  end
  if saves and twice then callback_states(state.trainer, "fit") end
end

local function logger_states(trainer)
  local list = {}
  for i, logger in ipairs(trainer.loggers) do
    logger:save()
    list[i] = { log_dir = logger.log_dir or "", state = logger.state_dict and logger:state_dict() }
  end
  return list
end

local function loop_states(trainer, now)
  return {
    fit = now.progress, cut = now.cut,
    results = now.logged.results, rank_zero_only = now.logged.rank_zero_only,
    window = now.open.window,
    nominal_batch = now.nominal_batch,
    callback_metrics = trainer.callback_metrics, logged_metrics = trainer.logged_metrics,
    progress_bar_metrics = trainer.progress_bar_metrics,
  }
end

-- Other names of tensors that are in the module twice: alias -> name.
local function aliases_of(module)
  local _, aliases = walk.tensors(module)
  return aliases
end

local function names_of_buffers(module)
  local names = {}
  for name in module:named_buffers() do names[name] = true end
  return names
end

local function weights_of(weights, now)
  for name, buffer in pairs(now and now.buffers or {}) do
    if weights[name] then weights[name] = buffer end
  end
  return weights
end

-- `now`: the resume point that the file holds; without it weights only.
local function model_of(state, held, now, in_parts)
  local trainer, module = state.trainer, state.module
  return {
    epoch = trainer.current_epoch, global_step = trainer.global_step,
    state_dict = weights_of(held.module, now), hyper_parameters = rawget(module, "hparams"),
    data_module_hyper_parameters = (state.data_module or {}).hparams,
    class_name = walk.class_name(module), aliases = aliases_of(module),
    buffer_names = in_parts and names_of_buffers(module) or nil,
  }
end

-- Adds what a run needs to resume; on other ranks than the first what they write parts of.
local function add_run(saved, state, held, now)
  local trainer = state.trainer
  saved.optimizer_states, saved.strategy = held.optimizers, held.strategy
  saved.gradients, saved.callbacks = now.open.gradients, {}
  if not trainer.is_global_zero then return end
  saved.random, saved.modes, saved.lr_schedulers = now.random, now.modes, scheduler_states(state)
  saved.callbacks, saved.metrics = callback_states(trainer, "save_checkpoint"), now.logged.metrics
  saved.loops = loop_states(trainer, now)
  saved.slices, saved.rank_gradients = now.open.slices, now.open.rank_gradients
  saved.MixedPrecision = state.scaler and state.scaler:state_dict() or nil
  saved.precision = state.precision:state_dict()
  saved.loggers = logger_states(trainer)
  local data = state.data_module
  if data and data.state_dict then saved.data_module = data:state_dict() end
end

-- The resume point and the model as they are now, with one walk over the module; nil on other ranks
-- than the first, unless all write; nil and the reason where the weights are not to be saved.
local function take(state, options)
  local _ <close> = walk.keep(state.module)
  state.step_count:settle()
  if state.late_rows then state.late_rows:settle() end
  local agreed, weights_only = options.agreed, options.weights_only
  local in_parts, now, held = options.in_parts, nil, nil
  if not agreed and state.failed then
    local refusal = checkpoint_parts.why_not_after_failure(state, weights_only)
    if refusal then errors.blame("save_checkpoint: %s", refusal) end
  end
  -- Without an agreement the script has every rank call it where that is needed.
  agreed = agreed or checkpoint_parts.take_all_ranks(state, weights_only)
  if agreed then exchange("save_checkpoint", dist.barrier) end -- names a rank that is here alone
  -- A rank that is asked to take part may not know what the file shall hold.
  if agreed or not weights_only then now = state.resume_point:to_save(agreed) end
  if agreed then
    held = exchange("save_checkpoint", collect, state, not weights_only, in_parts,
      options.own_tensors)
  elseif state.trainer.is_global_zero then
    held = collect(state, not weights_only, in_parts, options.own_tensors)
  end
  local all_here = agreed and in_parts
  if not (state.trainer.is_global_zero or all_here) then return end
  local whole = not all_here and not state.strategy:is_replicated "parameter" and held.module
  local refusal = state.nonfinite:why_not_saved(whole or nil)
  if refusal then return nil, refusal end
  parameters.check(state, "save_checkpoint")
  if weights_only then now = nil end
  return model_of(state, held, now, in_parts), held, now, agreed
end

--- Writes the file of a run that has not ended. Raises when it cannot be written, or would not
--- resume exactly. Rank 0 writes, for all; with state_dict_type = "sharded" all ranks do. Options:
--- weights_only; agreed: all ranks call it, so that metrics in mid-epoch and gradients in
--- mid-window are those of all. Without it no rank waits for another: the file has no such metrics,
--- and rank 0's gradients. later: where that can be, it returns what is on its way: an object with
--- done() and wait().
function checkpoint.save(state, path, options)
  options = options or {}
  local in_parts = checkpoint_parts.are_sharded(state)
  local saved, held, now, agreed = take(state, { agreed = options.agreed, in_parts = in_parts,
    weights_only = options.weights_only })
  if not saved and held then errors.blame("save_checkpoint: %s", held) end
  if not saved then return end
  -- A job that fails waits for a file that is being written; of a folder the former one is there.
  local _ <close> = c.dist.span(not in_parts)
  if now then add_run(saved, state, held, now) end
  hook_calls.hook(state, "on_save_checkpoint", saved)
  if in_parts then
    return require "ltrain.trainer.saving.sharded_save"(state, saved, path,
      agreed and dist.world_size() > 1, options.later)
  end
  local io = state.strategy.checkpoint_io
  local saving = options.later and state.strategy.root_device ~= "cpu"
    and io:save_later(saved, path)
  if saving then return saving end
  local ok, message = io:save(saved, path)
  if not ok and message then errors.blame("save_checkpoint: %s", message) end
end

--- What a file of a run that has not ended would hold now: the table on rank 0, and with `in_parts`
--- what they have of it on all ranks; nil on the others; nil and the reason where the run is not to
--- be saved as it is. All ranks call it, between two batches, and copy what they need before the
--- next one, which changes its tensors.
function checkpoint.collect(state, in_parts)
  local saved, held, now = take(state, { agreed = state.ranks.many, in_parts = in_parts,
    own_tensors = true })
  if not saved then return nil, held end
  add_run(saved, state, held, now)
  hook_calls.hook(state, "on_save_checkpoint", saved)
  return saved
end

-- Whether hooks get the checkpoint, and may read its tensors.
local function is_read_by_hooks(state)
  if state.module.on_load_checkpoint then return true end
  for _, callback in ipairs(state.trainer.callbacks) do
    if callback.on_load_checkpoint and callback.reads_state_dict ~= false then return true end
  end
  return false
end

--- Takes back the weights, and nothing else.
function checkpoint.restore_weights(state, saved)
  local module, strategy = state.module, state.strategy
  if is_read_by_hooks(state) and strategy:is_replicated "parameter" then
    saved.state_dict = parts.whole(saved.state_dict)
  end
  if module.on_load_checkpoint then hook_calls.method(state, "on_load_checkpoint", saved) end
  strategy:load_module_state(module, saved.state_dict)
end

-- They are what they were when a fit saved the file. In other loops they keep what they have come
-- to: the best checkpoints, why a fit stopped.
local function restore_callbacks(state, saved)
  local trainer, module = state.trainer, state.module
  for _, callback in ipairs(trainer.callbacks) do
    if callback.on_load_checkpoint then callback:on_load_checkpoint(trainer, module, saved) end
  end
  if state.fn ~= "fit" then return end
  for _, callback in ipairs(trainer.callbacks) do
    local own = saved.callbacks and saved.callbacks[callback:state_key()]
    if own ~= nil then callback:load_state_dict(own) end
  end
end

--- Takes back the weights, and what callbacks and the DataModule had saved.
function checkpoint.restore_model(state, saved)
  local data = state.data_module
  checkpoint.restore_weights(state, saved)
  if data and data.load_state_dict and saved.data_module then
    data:load_state_dict(saved.data_module)
  end
  restore_callbacks(state, saved)
end

local function restore_loops(state, loops)
  local trainer = state.trainer
  for key, value in pairs(loops.fit) do state.progress[key] = value end
  local called = state.progress.called
  if called then called.before, called.count = called.count, 0 end
  state.window:set_nominal_batch(loops.nominal_batch)
  trainer:forget_metrics()
  for _, name in ipairs { "callback_metrics", "logged_metrics", "progress_bar_metrics" } do
    for key, value in pairs(loops[name] or {}) do trainer[name][key] = value end
  end
end

local WEIGHTS_ALONE <const> = "give fit {ckpt_path = ..., weights_only = true} to begin a new "
  .. "training with the weights alone"

-- load(object, its state) for each of a list.
local function restore_lists(path, what, list, states, load)
  states = states or {}
  if #states ~= #list then
    errors.blame("fit: %s has the state of %d %ss, configure_optimizers gave %d: %s", path, #states,
      what, #list, WEIGHTS_ALONE)
  end
  for i, object in ipairs(list) do
    local theirs = type(states[i]) == "table" and states[i].class
    local own = class.of(object) and class.of(object).__name
    if theirs and own and theirs ~= own then
      errors.blame("fit: %s has the state of the %s %s, configure_optimizers gave %s: %s", path,
        what, theirs, own, WEIGHTS_ALONE)
    end
  end
  for i, object in ipairs(list) do load(object, states[i]) end
end

-- Iterates over the loggers whose folder is that of the run in the file: (logger, its entry).
local function continued(state, saved)
  local i, loggers = 0, state.trainer.loggers
  return function()
    while i < #loggers do
      i = i + 1
      local own = (saved.loggers or {})[i]
      if own and own.log_dir == loggers[i].log_dir then return loggers[i], own end
    end
  end
end

--- Before the first hook of a fit that is resumed: what it logs must not replace the files.
function checkpoint.continue_logs(state, saved)
  for logger in continued(state, saved) do logger.resumed = true end
end

--- Restores everything else: the fit resumes where the file was written.
function checkpoint.restore_fit(state, saved, path)
  local trainer = state.trainer
  if not saved.loops or not saved.optimizer_states then
    errors.blame("fit: %s has weights only: training cannot be resumed from it: %s", path,
      WEIGHTS_ALONE)
  elseif trainer.max_epochs ~= -1 and saved.epoch > trainer.max_epochs then
    errors.blame("fit: %s was saved in epoch %d: max_epochs = %d is before it", path, saved.epoch,
      trainer.max_epochs)
  end
  trainer.current_epoch, trainer.global_step = saved.epoch, saved.global_step
  restore_loops(state, saved.loops)
  data_position.restore(state, saved.loops.cut, path)
  restore_lists(path, "optimizer", state.optimizers, saved.optimizer_states, function(...)
    state.strategy:load_optimizer_state(...)
  end)
  local theirs = saved.strategy
  if theirs and theirs.class == class.of(state.strategy).__name then
    state.strategy:load_state_dict(theirs.state, state.optimizers)
  end
  local schedulers = {}
  for i, config in ipairs(state.schedulers) do schedulers[i] = config.scheduler end
  restore_lists(path, "scheduler", schedulers, saved.lr_schedulers, function(scheduler, own)
    scheduler:load_state_dict(own)
  end)
  module_modes.restore(state, saved.modes)
  local scaler = state.scaler
  if scaler and saved.MixedPrecision then scaler:load_state_dict(saved.MixedPrecision) end
  if saved.precision then state.precision:load_state_dict(saved.precision) end
  partial_metrics.restore(state, { results = saved.loops.results, metrics = saved.metrics,
    rank_zero_only = saved.loops.rank_zero_only }, path)
  for logger, own in continued(state, saved) do
    logger:resume(state.progress.stepped, own.state)
  end
  if saved.random then c.runtime.rng_restore(saved.random) end
  state.resumed = true
end

return checkpoint
