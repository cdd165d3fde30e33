--- stdlib/trainer/run.lua: set-up and teardown of a call of fit, validate, test or predict.
local Callback = require "ltrain.core.Callback"
local Module = require "ltrain.nn.Module"
local assemble = require "ltrain.trainer.setup.assemble"
local batches = require "ltrain.trainer.data.batches"
local c = require "ltrain.c"
local hook_calls = require "ltrain.trainer.hook_calls"
local checkpoint = require "ltrain.trainer.saving.checkpoint"
local collectives = require "ltrain.dist.collectives"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local eval_loop = require "ltrain.trainer.eval_loop"
local fit_loop = require "ltrain.trainer.fit_loop"
local interrupt = require "ltrain.core.interrupt"
local loop = require "ltrain.trainer.loop"
local misspelled_hooks = require "ltrain.trainer.misspelled_hooks"
local new_state = require "ltrain.trainer.state"
local accumulation_state = require "ltrain.trainer.saving.accumulation_state"
local optimize = require "ltrain.trainer.optimize"
local optimizers = require "ltrain.trainer.optimizers"
local overrides = require "ltrain.trainer.setup.overrides"
local parameters = require "ltrain.trainer.steps.parameters"
local placement = require "ltrain.trainer.setup.placement"
local ranks = require "ltrain.trainer.ranks.rank_setup"
local run_files = require "ltrain.trainer.run_files"
local partial_metrics = require "ltrain.trainer.logged.partial_metrics"
local shards = require "ltrain.trainer.data.shards"
local slices = require "ltrain.trainer.ranks.slices"
local sources = require "ltrain.trainer.data.sources"
local collective_hooks = require "ltrain.core.collective_hooks"
local rank_warnings = require "ltrain.trainer.ranks.rank_warnings"
local tree = require "ltrain.core.tree"
local version = require "ltrain.loggers.version"
local walk = require "ltrain.core.walk"
local pending_writes = require "ltrain.trainer.saving.pending_writes"

local run = {}

local raised <const> = c.runtime.frames.raised

local function profile_of(state)
  local trainer = state.trainer
  trainer.profiler:_reset()
  if not trainer.options.profiler then return nil end
  local profiler <const> = require "ltrain.profiler"
  local profile = profiler.open(trainer.options.profiler)
  return setmetatable({}, { __close = function()
    local folder = trainer.log_dir or trainer.default_root_dir
    trainer.profiler:_reset(profiler.close(profile, state.fn, folder))
  end })
end

local places <const> = c.runtime.places
local STEP <const> = { fit = "training_step", validate = "validation_step", test = "test_step" }

local function new_progress()
  return {
    batch = 0, in_epoch = false, stepped = 0, skipped = 0, train_batches = 0, eval_batches = 0,
    eval_rows = 0, predict_batches = 0,
  }
end

-- Callbacks that the module brings replace those of the same class.
local function merge_callbacks(state)
  if not state.hooks.configure_callbacks then return end
  local trainer = state.trainer
  local brought = hook_calls.method(state, "configure_callbacks") or {}
  if type(brought) ~= "table" then
    errors.blame("configure_callbacks: return a callback or a list of them: got %s",
      errors.show(brought))
  elseif getmetatable(brought) ~= nil then
    brought = { brought }
  end
  local list = {}
  for _, callback in ipairs(trainer.callbacks) do
    local replaced = false
    for _, new in ipairs(brought) do
      replaced = replaced or getmetatable(new) ~= nil and getmetatable(new) ~= Callback
        and getmetatable(new) == getmetatable(callback)
    end
    if not replaced then list[#list + 1] = callback end
  end
  for _, new in ipairs(brought) do list[#list + 1] = Callback.adopt(new) end
  trainer.callbacks = assemble.order(list)
  hook_calls.resolve(state)
end

local function check_fit(state)
  if not state.module.configure_optimizers then
    errors.blame("fit: %s has no configure_optimizers: define it, and return an optimizer as "
      .. "lt.optim.Adam(self:parameters(), {lr = 1e-3})", walk.class_name(state.module))
  end
  optimize.check_mode(state)
end

local function check_methods(state)
  local step = STEP[state.fn]
  if step and not state.module[step] then
    errors.blame("%s: %s has no %s: define function %s:%s(batch)", state.fn,
      walk.class_name(state.module), step, walk.class_name(state.module), step)
  end
  if state.fn == "fit" then check_fit(state) end
end

-- Makes an object's `trainer` the one of this run.
local function attach(state, object)
  state.attached[object] = rawget(object, "trainer")
  rawset(object, "trainer", state.trainer)
end

-- Where a hook of another Trainer's run has begun this one, the objects are that one's again.
local function detach(state)
  for object, outer in pairs(state.attached) do
    if outer.running and outer.running ~= state then rawset(object, "trainer", outer) end
  end
end

local OF_LOGGERS <const> = { "log_metrics", "log_hyperparams", "save", "finalize" }

local function check_logger(state, logger)
  for _, name in ipairs(OF_LOGGERS) do
    hook_calls.check_callable(state, logger, name, logger[name])
  end
  if logger.begin then hook_calls.check_callable(state, logger, "begin", logger.begin) end
end

local function connect(state)
  local trainer = state.trainer
  trainer.module, trainer.lightning_module, trainer.model = state.module, state.module, state.module
  trainer.datamodule = state.data_module
  attach(state, state.module)
  if state.data_module then attach(state, state.data_module) end
  hook_calls.resolve(state)
  merge_callbacks(state)
  misspelled_hooks.check(state)
  check_methods(state)
  version.choose_all(trainer.loggers)
  ranks.share_folders(state)
  for _, logger in ipairs(trainer.loggers) do
    check_logger(state, logger)
    if logger.begin then logger:begin(state.fn) end
  end
  state.strategy:setup_environment(trainer)
end

-- On one rank a machine, unless the object says that its files are for all machines.
local function prepare_data(state)
  local strategy, data = state.strategy, state.data_module
  if data and data.prepare_data then
    strategy:prepare_data(function() hook_calls.data(state, "prepare_data") end,
      data.prepare_data_per_node == false)
  end
  if state.hooks.prepare_data then
    strategy:prepare_data(function() hook_calls.method(state, "prepare_data") end,
      state.module.prepare_data_per_node == false)
  end
end

local function set_up(state)
  local stage = state.fn
  hook_calls.data(state, "setup", stage)
  hook_calls.hook(state, "setup", stage)
  if state.hooks.configure_model then hook_calls.method(state, "configure_model") end
end

-- Whether two hyper-parameters are equal: numbers, texts, booleans, or tables of them.
local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  for key, value in pairs(a) do
    if not same(value, b[key]) then return false end
  end
  return true
end

-- What an object has saved for the loggers.
local function hparams_of(object)
  return object and rawget(object, "_log_hparams") ~= false and rawget(object, "hparams") or {}
end

local function log_hparams(state)
  local trainer, hparams = state.trainer, {}
  if not trainer.options.enable_autolog_hparams then return end
  for name, value in next, overrides.args.values or {} do hparams[name] = value end
  local of_module, of_data = hparams_of(state.module), hparams_of(state.data_module)
  for name, value in tree.pairs(of_data) do
    if of_module[name] ~= nil and not same(of_module[name], value) then
      errors.blame("fit: the hyper-parameter %s of the module and of the data module differ: %s "
        .. "and %s", name, errors.show(of_module[name]), errors.show(value))
    end
    hparams[name] = value
  end
  for name, value in next, of_module do hparams[name] = value end
  if next(hparams) == nil then return end
  for _, logger in ipairs(trainer.loggers) do logger:log_hyperparams(hparams) end
end

local function take_optimizers(state)
  local _ <close> = walk.keep(state.module)
  optimize.prepare(state)
  parameters.note(state)
end

local function set_up_fit(state, saved, path)
  slices.prepare(state)
  optimizers.configure(state)
  take_optimizers(state)
  if saved then checkpoint.continue_logs(state, saved) end
  hook_calls.hook(state, "on_fit_start")
  checkpoint.check_callbacks(state)
  if saved then
    local _ <close> = errors.reading(path)
    checkpoint.restore_fit(state, saved, path)
  end
  log_hparams(state)
  state.module:zero_grad()
  accumulation_state.take_up(state, saved, path)
end

-- A random seed is reported once, so that the run can be repeated; a resumed run has that of its
-- file.
local function report_seed(state)
  local seed = c.runtime.drawn_seed()
  if seed then
    local text = "seed %d (chosen at random; set it with --seed, lt.seed or LT_SEED)"
    state.trainer:say(text:format(seed))
  end
end

local WORK <const> = {
  fit = function(state)
    local _ <close> = c.enable_grad() -- a hook of a validation may fit another module
    return fit_loop.run(state)
  end,
  validate = function(state)
    return eval_loop.run(state, "validation", sources.load_eval(state, "val")) or {}
  end,
  test = function(state)
    return eval_loop.run(state, "test", sources.load_eval(state, "test")) or {}
  end,
  predict = function(state)
    return require "ltrain.trainer.predict_loop".run(state, sources.load_eval(state, "predict"))
  end,
}

local function finalize(trainer, status)
  for _, logger in ipairs(trainer.loggers) do pcall(logger.finalize, logger, status) end
end

-- Ends a run before its end.
local function break_off(state)
  state.trainer.state.status = "interrupted"
  state.hook = false
  if state.fn == "fit" then fit_loop.fail(state) end
  collective_hooks.set(false)
  state.module:untoggle_optimizer()
end

-- After a device's fault a new process resumes from what is saved.
local function report_fault(state)
  if not c.runtime.device_faulted() or state.fn ~= "fit" then return end
  local path = require "ltrain.trainer.saving.resume".newest(state)
  state.trainer:say(path and ("the last checkpoint is %s: continue from it with ckpt_path")
    :format(path) or "there is no checkpoint to continue from")
end

local function fail(state, err)
  local trainer = state.trainer
  overrides.failed_step = state.fn == "fit" and trainer.global_step or nil
  report_fault(state)
  trainer.interrupted = interrupt.is(err)
  rank_warnings.report(state)
  -- An error in here must not hide the one that is reported.
  for _, callback in ipairs(state.callbacks) do
    if callback.on_exception then
      local ok, message = pcall(callback.on_exception, callback, trainer, state.module, err)
      if not ok then trainer:warn("on_exception: " .. tostring(message)) end
    end
  end
  pcall(hook_calls.data, state, "on_exception", err)
  finalize(trainer, interrupt.is(err) and "interrupted" or "failed")
  run_files.finish(state, interrupt.is(err) and "interrupted" or "failed", err)
end

-- The end of a run, also after an error (`err`), and in a coroutine that was closed.
local function close(state, err)
  if state.closed then return end
  state.closed = true
  places.hook, places.source = state.outer_hook, nil
  c.dist.calm()
  c.dist.end_step()
  collectives.use(nil)
  local trainer = state.trainer
  local unwritten = pending_writes.leave(state)
  if unwritten then trainer:warn(unwritten) end
  if state.snapshots then state.snapshots:close() end
  if not state.finished then break_off(state) end
  if err ~= nil then
    fail(state, err)
  elseif not state.finished then
    finalize(trainer, "interrupted")
    run_files.finish(state, "interrupted")
  end
  optimize.release(state)
  state.strategy:teardown()
  state.precision:teardown()
  state.strategy.module = state.outer_module
  loop.leave()
  loop.set_draws(state.draws) -- a hook of another run has begun this one
  c.set_float32_matmul_precision(state.outer_matmul)
  c.runtime.forget_casts()
  loop.set_stage(state, nil)
  c.runtime.collect_end()
  loop.drop_batch(state)
  state.loop.results = nil
  trainer.running = nil
  version.release(trainer.loggers)
  detach(state)
  sources.release(state)
  shards.unshard(state)
end

local function guard(state)
  return setmetatable({}, { __close = function(_, err) close(state, err) end })
end

local function tear_down(state)
  local stage = state.fn
  hook_calls.data(state, "teardown", stage)
  hook_calls.hook(state, "teardown", stage)
  for _, logger in ipairs(state.trainer.loggers) do logger:finalize("success") end
  run_files.finish(state, "finished")
  state.trainer.state.status = "finished"
  state.finished = true
end

-- The module where it runs, and as the strategy wants it.
local function set_up_module(state)
  local strategy, trainer, before = state.strategy, state.trainer, state.module
  strategy:start(trainer)
  local module = strategy:setup_module(before)
  if module == before then return end
  if not walk.is_module(module) then
    errors.blame("%s: setup_module must return the module: got %s", errors.show(strategy),
      errors.show(module))
  end
  strategy.module, state.module = module, module
  trainer.module, trainer.lightning_module, trainer.model = module, module, module
  attach(state, module)
  hook_calls.resolve(state)
end

-- What a fit takes back of the checkpoint that is asked for, and its path; nil: there is none.
local function begin_from(state, ckpt_path)
  state.trainer.ckpt_path = nil
  local snapshots <const> = state.snapshots
  if ckpt_path == nil and not (snapshots and snapshots:resumes()) then return nil end
  return require "ltrain.trainer.saving.resume".begin(state, ckpt_path)
end

-- What every rank does, from set-up to end.
local function run_as_rank(state, ckpt_path)
  local fn = state.fn
  local _ <close> = guard(state)
  ranks.enter(state)
  local _ <close> = profile_of(state)
  if state.forks then partial_metrics.begin_forked(state) end
  local ends = state.forks and not dist.world().stays -- the other ranks end with this run
  set_up(state)
  batches.prepare(state)
  state.precision:convert_module(state.module)
  local saved, path = begin_from(state, ckpt_path)
  set_up_module(state)
  if not (saved and fn == "fit") then report_seed(state) end
  if fn == "fit" then set_up_fit(state, saved, path) else ranks.banner(state) end
  -- A long run does not keep the tensors of the checkpoint.
  saved = nil -- luacheck: ignore
  run_files.begin(state)
  c.runtime.collect_by_batch()
  local outputs = WORK[fn](state)
  pending_writes.settle(state)
  if fn == "fit" then
    hook_calls.hook(state, "on_fit_end")
    ranks.report_waiting(state)
    accumulation_state.leave(state)
    if not ends then partial_metrics.leave(state) end
  end
  if ends then partial_metrics.end_forked(state) end
  tear_down(state)
  return outputs
end

-- Whether files that are saved after this run are of the fit before it, which has the optimizers:
-- validate, test and predict have none.
local function follows_fit(state)
  local last = state.trainer.last_run
  return state.fn ~= "fit" and last ~= nil and last.fn == "fit" and last.finished
    and last.module == state.module
end

-- Of a fit whose launcher keeps snapshots.
local function take_snapshots(state)
  if state.fn ~= "fit" or not c.runtime.getenv "LTRAIN_SNAPSHOT" then return end
  state.snapshots = require "ltrain.trainer.saving.Snapshots".new(state) or false
  if state.snapshots then state.snapshots:find() end
end

local function start(trainer, fn, module, fit_args, ckpt_path)
  if trainer.running then
    errors.blame("%s: this Trainer is running %s", fn, trainer.running.fn)
  end
  placement.check_ranks(trainer, fn)
  trainer.progress = trainer.progress or new_progress()
  local state = new_state(trainer, fn, Module.adopt(module, fn), fit_args)
  state.draws, state.outer_hook = loop.draws(), places.hook
  state.outer_module = trainer.strategy.module
  state.outer_matmul = c.get_float32_matmul_precision()
  state.forks = dist.world_size() == 1
  trainer.running = state
  if not follows_fit(state) then trainer.last_run = state end
  trainer.state = { status = "running", fn = fn }
  trainer.should_stop, trainer.interrupted = false, false
  if not (fn == "fit" and trainer.progress.in_epoch) then trainer:forget_metrics() end
  c.runtime.collect_begin()
  local _ <close> = guard(state)
  c.set_float32_matmul_precision(trainer.options.matmul_precision or state.outer_matmul)
  take_snapshots(state)
  if overrides.resumes() then version.continue(trainer.loggers, overrides.resume.folders or {}) end
  if fn == "fit" and ckpt_path then version.resume_old(trainer.loggers) end
  connect(state)
  prepare_data(state)
  -- Reports of failing ranks go beside the logs.
  local outputs = state.strategy:launch(fn, function() return run_as_rank(state, ckpt_path) end,
    trainer.log_dir)
  state.finished = true
  return outputs
end

local function results_of(ok, ...)
  if not ok then error((...), 0) end
  return ...
end

--- Runs fit, validate, test or predict from set-up to end; returns what the loop gives.
function run.start(...)
  local _ <close> = c.runtime.plain_locale()
  local _, is_main = coroutine.running()
  if is_main then return start(...) end
  -- What an error leaves open in a coroutine stays so until it is closed.
  return results_of(xpcall(start, raised, ...))
end

return run
