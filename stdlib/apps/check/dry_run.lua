--- stdlib/apps/check/dry_run.lua: runs one batch of two samples through the loops of a Trainer, and
--- records what the checks need.
--
-- The loops are the real ones, so that hooks, data and shapes are those of training; there are no
-- loggers, no checkpoints and one rank. Checks come in turns: `before` the step, with experiments
-- on the same weights, and `after` it, with gradients.
local Callback = require "ltrain.core.Callback"
local Logger = require "ltrain.core.Logger"
local Experiment = require "ltrain.apps.check.experiment"
local batch_samples = require "ltrain.apps.check.batch_samples"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local interrupt = require "ltrain.core.interrupt"
local loaders = require "ltrain.trainer.data.loaders"
local run = require "ltrain.trainer.run"
local sandbox = require "ltrain.apps.check.sandbox"

local dry_run = {}

local SAMPLES <const> = 2
local LEFT_OUT <const> = { -- callbacks that only write, draw, or train for long
  "BasePredictionWriter", "BatchSizeFinder", "DeviceStatsMonitor", "EarlyStopping",
  "LearningRateFinder", "ModelCheckpoint", "ModelSummary", "OnExceptionCheckpoint", "ProgressBar",
  "StochasticWeightAveraging", "ThroughputMonitor", "Timer", "WeightAveraging",
}

local function is_left_out(callback)
  for _, name in ipairs(LEFT_OUT) do
    if class.is_a(callback, require("ltrain.callbacks." .. name)) then return true end
  end
  return false
end

--- A list of callbacks without those that write, draw or take long.
function dry_run.simplified(callbacks)
  local kept = {}
  for _, callback in ipairs(callbacks) do
    if not is_left_out(callback) then kept[#kept + 1] = callback end
  end
  return kept
end

-- The Trainer without what writes, draws or takes long; monitors of what is left out are kept.
local function simplify(context, trainer)
  context.monitors = {}
  for _, callback in ipairs(trainer.callbacks) do
    if callback.monitor then context.monitors[#context.monitors + 1] = callback end
  end
  trainer.callbacks = dry_run.simplified(trainer.callbacks)
  if #trainer.loggers > 0 then trainer.loggers = { Logger() } end -- it writes nothing
  trainer.num_sanity_val_steps, trainer.check_val_every_n_epoch = 0, 1
  trainer.val_check_interval = 1.0
  trainer.options.profiler, trainer.options.overfit_batches = nil, 0
  trainer.options.reload_dataloaders_every_n_epochs = 0
end

-- Two samples of a batch; all of it where it cannot be cut.
local function cut(context)
  return function(whole)
    local n = whole and batch_samples.size(whole)
    if not n or n <= SAMPLES or context.uncut then return whole end
    context.whole = whole
    return batch_samples.rows(whole, { 1, 2 }, n)
  end
end

-- A batch size that the script takes for granted is not a fault of two samples.
local function try_step(context, state, given)
  local ok, message = Experiment.try(Experiment.step, state, given, context.draws)
  if ok or not context.whole then return given end
  context.uncut = true
  if not Experiment.try(Experiment.step, state, context.whole, context.draws) then return given end
  context.report:skip(("training_step takes only whole batches: with %d samples it raised: %s")
    :format(SAMPLES, (tostring(message):gsub("\n.*", ""))))
  return context.whole
end

local function each_check(context, stage, state)
  for _, check in ipairs(context.checks) do
    if check[stage] then
      local ok, message = xpcall(check[stage], function(value)
        if interrupt.is(value) then return value end
        return c.runtime.error_text(value)
      end, context, state)
      if not ok and interrupt.is(message) then error(message, 0) end
      if not ok then context.report:skip(("%s: %s"):format(check.name, tostring(message))) end
    end
  end
end

local function one_loader(loader)
  if type(loader) ~= "table" then return end
  if rawget(loader, "num_workers") then
    loader.num_workers, loader.persistent_workers = 0, false
    loader.prefetch, loader.worker_init_fn = nil, nil
  end
end

-- What is noted on the way of the fit.
local function probe(context)
  local methods = {}
  function methods.on_fit_start(_, trainer)
    context.step_line = c.runtime.function_line(context.module.training_step)
    each_check(context, "at_start", trainer.running)
  end
  function methods.on_train_start(_, trainer)
    local state = trainer.running
    context.draws = c.runtime.rng_get()
    trainer.max_epochs = trainer.current_epoch + 1
    one_loader(state.data.train.loader)
    for _, source in ipairs(state.data.val or {}) do one_loader(source.loader) end
    each_check(context, "on_data", state)
  end
  function methods.on_train_batch_start(_, trainer, _, given)
    local state = trainer.running
    context.draws = c.runtime.rng_get()
    given = try_step(context, state, given)
    state.loop.batch, context.batch = given, given
    if state.automatic then state.module:zero_grad() end
    each_check(context, "before", state)
    state.module:zero_grad()
    c.runtime.rng_set(context.draws)
    each_check(context, "begins", state)
    context.began = c.runtime.clock()
  end
  local function note_gradients(_, trainer)
    for name, parameter in trainer.running.module:named_parameters() do
      if parameter.grad then context.gradients[name] = parameter.grad end
    end
  end
  function methods.on_validation_batch_end(_, trainer)
    each_check(context, "validated", trainer.running)
  end
  for _, name in ipairs { "validation", "test", "predict" } do
    methods[("on_%s_batch_start"):format(name)] = function() interrupt.allow() end
  end
  methods.on_after_backward, methods.on_before_optimizer_step = note_gradients, note_gradients
  function methods.on_train_batch_end(_, trainer)
    context.step_seconds = c.runtime.clock() - context.began
    context.stepped = true
    each_check(context, "after", trainer.running)
  end
  function methods.on_fit_end(_, trainer) each_check(context, "at_end", trainer.running) end
  return Callback.adopt(methods)
end

-- The error as a text with its line; interrupts and ends by the sandbox as they are.
local function handler(value)
  if interrupt.is(value) or sandbox.is_stop(value) then return value end
  local message = c.runtime.error_text(value)
  if not message:find "^[^\n:]+:%d+: " then message = errors.where() .. message end
  return message
end

--- Calls f(...): true, or false and the error's text with its line. An interrupt is passed on.
function dry_run.call(f, ...)
  local ok, message = xpcall(f, handler, ...)
  if not ok and interrupt.is(message) then error(message, 0) end
  return ok, message
end

local function start(context, fn, arguments)
  local trainer = context.trainer
  context.stage = fn
  local ok, message = dry_run.call(run.start, trainer, fn, context.module, arguments)
  if ok then return true end
  if sandbox.is_stop(message) then
    context.report:skip(tostring(message), message.where)
  elseif not (context.broken and message:find "made the first")
    and not (context.frozen and message:find "no parameter that requires grad") then
    context.report:raised(fn, message)
  end
  return false
end

--- Runs the loop that the script wanted, and those for which it has data.
function dry_run.start(context)
  local trainer, arguments = context.trainer, context.arguments
  context.gradients = {}
  each_check(context, "options")
  simplify(context, trainer)
  loaders.cut = cut(context)
  local _ <close> = setmetatable({}, { __close = function() loaders.cut = nil end })
  if context.fn == "fit" then
    local callbacks = table.move(trainer.callbacks, 1, #trainer.callbacks, 1, {})
    table.insert(trainer.callbacks, probe(context))
    local ok = start(context, "fit", arguments)
    trainer.callbacks = callbacks
    if not ok and context.module.validation_step and arguments.val ~= nil then
      start(context, "validate", { val = arguments.val, data_module = arguments.data_module })
    end
  else
    start(context, context.fn, arguments)
  end
  for _, kind in ipairs { "test", "predict" } do
    local step = kind == "test" and context.module.test_step
    if arguments[kind] ~= nil and context.fn == "fit" and (kind == "predict" or step) then
      start(context, kind, { [kind] = arguments[kind] })
    end
  end
end

return dry_run
