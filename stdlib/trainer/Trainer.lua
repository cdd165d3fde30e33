--- stdlib/trainer/Trainer.lua: lt.Trainer: fits, validates, tests and predicts with a module.
--
--   local lt = require "ltrain"
--   local net = lt.nn.Linear(2, 1)
--   function net:training_step(batch) return self:loss(batch) end
--   function net:validation_step(batch) self:log("val_loss", self:loss(batch)) end
--   function net:loss(batch) return lt.mse_loss(self(batch[1]), batch[2]) end
--   function net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.1}) end
--   local x = lt.randn(64, 2)
--   local data = lt.data.TensorDataset(x, x:sum(2, {keepdim = true}))
--   local train, val = table.unpack(lt.data.random_split(data, {48, 16}))
--   local val_loader = lt.data.DataLoader(val, {batch_size = 16})
--   local trainer = lt.Trainer{max_epochs = 50}
--   trainer:fit(net, {train = lt.data.DataLoader(train, {batch_size = 8}), val = val_loader})
--   print(trainer:validate(net, val_loader)[1].val_loss < 0.1)
--   -- prints: true
--
-- The object contains what scripts and callbacks may read: options, counters, metrics, parts. The
-- state of a single call is in a table that the loops pass on.
local consensus = require "ltrain.trainer.ranks.consensus"
local assemble = require "ltrain.trainer.setup.assemble"
local batch_boundary = require "ltrain.trainer.batch_boundary"
local c = require "ltrain.c"
local checkpoint = require "ltrain.trainer.saving.checkpoint"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local fit_args = require "ltrain.trainer.setup.fit_args"
local old_options = require "ltrain.compat.options"
local optimize = require "ltrain.trainer.optimize"
local option_rules = require "ltrain.trainer.setup.option_rules"
local options = require "ltrain.trainer.setup.options"
local overrides = require "ltrain.trainer.setup.overrides"
local placement = require "ltrain.trainer.setup.placement"
local properties = require "ltrain.trainer.properties"
local results = require "ltrain.trainer.logged.results"
local run = require "ltrain.trainer.run"
local shared_gradients = require "ltrain.trainer.ranks.shared_gradients"
local walk = require "ltrain.core.walk"
local checkpoint_parts = require "ltrain.trainer.saving.checkpoint_parts"

local sessions <const> = c.runtime.frames.sessions

local Trainer = properties.give(class.extend(nil, "Trainer"))

Trainer.training, Trainer.validating, Trainer.sanity_checking = false, false, false
Trainer.testing, Trainer.predicting = false, false

Trainer.__options = { save_checkpoint = "weights_only storage_options" }

function Trainer.extend(parent, name)
  return properties.give(class.extend(parent, name))
end

--- Trainer{max_epochs = 3, ...}: the options are the rows of trainer/setup/options.lua.
function Trainer:init(script)
  if script ~= nil and type(script) ~= "table" then
    errors.blame("Trainer: options must be a table: got %s", errors.show(script))
  end
  self._notes = {} -- kept until all is well: an error comes alone
  -- Each in today's words before they meet: what the command line says wins.
  script = overrides.apply(old_options.translate(self, script or {}))
  script = old_options.translate(self, script)
  local o = config.check(script, options, "Trainer")
  option_rules.check_together(o, script)
  self.options = o
  placement.set(self, o)
  assemble.limits(self, o)
  assemble.callbacks(self, o)
  assemble.loggers(self, o)
  self.current_epoch, self.global_step = 0, 0
  self.callback_metrics, self._logged_metrics, self.progress_bar_metrics = {}, {}, {}
  self.should_stop, self.is_last_batch, self.interrupted = false, false, false
  self.optimizers, self.lr_scheduler_configs = {}, {}
  self.state = { status = "initializing" }
  local notes = self._notes
  self._notes = nil
  for _, text in ipairs(notes) do self:note(text) end
end

-- The four loops.

-- "best" where rank 0 knows a best checkpoint, for all ranks.
local function best_of_rank_zero(trainer)
  return trainer.strategy:broadcast(trainer:best_model_path() and "best" or false) or nil
end

local function check_self(self, fn)
  if not class.is_a(self, Trainer) then
    errors.blame("%s: call it with a colon, trainer:%s(...): got %s instead of the Trainer", fn,
      fn, errors.show(self))
  end
end

local function start(self, fn, module, ...)
  check_self(self, fn)
  if fn == "fit" and self.epochs_by_default then
    console.say("max_epochs is not set: up to 1000 epochs")
    self.epochs_by_default = false
  end
  local arguments = fit_args.read(fn, ...)
  overrides.begin(fn)
  local ckpt_path = overrides.take_ckpt_path(fn) or arguments.ckpt_path
  if module == nil then
    module = self.module
    if module == nil then errors.blame("%s: a module is needed: got nil", fn) end
    if not ckpt_path and fn ~= "fit" then ckpt_path = best_of_rank_zero(self) end
  end
  overrides.first_loop()
  if overrides.take then overrides.take(self, fn, module, arguments) end
  return run.start(self, fn, module, arguments, ckpt_path), arguments
end

--- Trains: trainer:fit(module [, train [, val]] [, {ckpt_path =, train =, val =}]); a DataModule
--- may be passed instead of the loaders. ckpt_path resumes from a file, from "last" or from "best";
--- with weights_only = true a new training run starts with the weights of the file.
function Trainer:fit(module, ...)
  start(self, "fit", fit_args.split(module, ...))
end

--- Evaluates on the validation data; returns a list of tables of metrics, one per loader.
function Trainer:validate(module, ...)
  local metrics, arguments = start(self, "validate", fit_args.split(module, ...))
  if arguments.verbose ~= false then console.table("validate", metrics) end
  return metrics
end

--- Evaluates on the test data; returns a list of tables of metrics, one per loader.
function Trainer:test(module, ...)
  local metrics, arguments = start(self, "test", fit_args.split(module, ...))
  if arguments.verbose ~= false then console.table("test", metrics) end
  return metrics
end

--- Runs predict_step over the data; returns the list of its results, one per batch (for several
--- loaders a list of such lists), or nil with return_predictions = false.
function Trainer:predict(module, ...)
  return (start(self, "predict", fit_args.split(module, ...)))
end

local WORDS <const> = { fit = true, validate = true, test = true, predict = true }

--- Returns the module that make() returns, with the dtype of the precision, on the device of this
--- rank; if fit has yet to fork the ranks, it stays on the CPU, and fit moves it.
---@param make function () -> Module
function Trainer:init_module(make)
  check_self(self, "init_module")
  if not class.is_callable(make) then
    errors.blame("init_module: pass a function that returns the module: got %s", errors.show(make))
  end
  local module = make()
  if not walk.is_module(module) then
    errors.blame("init_module: the function must return a module: got %s", errors.show(module))
  end
  self.strategy.precision:convert_module(module)
  if (self.strategy.ranks or 1) == dist.world().ranks then module:to(self.strategy.root_device) end
  return module
end

--- trainer:steps("fit", module, loader) returns a function that runs a loop step by step: each call
--- runs up to the next batch or hook and returns its name; nil at the end. Leaving a `for` over it
--- early ends the run.
function Trainer:steps(word, ...)
  if not WORDS[word] then
    errors.blame("steps: the loop must be 'fit', 'validate', 'test' or 'predict': got %s",
      errors.show(word))
  end
  local arguments = table.pack(...)
  fit_args.read(word, table.unpack(arguments, 2, arguments.n)) -- wrong ones are reported here
  local run_loop = coroutine.create(function()
    self.stepped = true
    local _ <close> = setmetatable({}, { __close = function() self.stepped = false end })
    self[word](self, table.unpack(arguments, 1, arguments.n))
  end)
  local function step()
    local _ <close> = c.runtime.plain_locale() -- the run's; its caller's comes back
    local ok, where = coroutine.resume(run_loop)
    if ok then return where end
    coroutine.close(run_loop)
    error(where, 0)
  end
  local function close()
    local _ <close> = c.runtime.plain_locale()
    coroutine.close(run_loop)
  end
  return step, nil, nil, setmetatable({}, { __close = close })
end

-- Checkpoints.

local SAVE <const> = { weights_only = { type = "boolean", default = false } }
local REQUEST <const> = { weights_only = SAVE.weights_only,
  agreed = { type = "boolean", default = false } }

--- Writes a checkpoint of the current run, or of the last one: of the fit, if only validate, test
--- or predict followed. Options: weights_only.
function Trainer:save_checkpoint(path, save_options)
  local o = config.check(save_options, SAVE, "save_checkpoint")
  config.argument(path, "string", "save_checkpoint", "the path")
  local state = self.running or self.last_run
  if not state then errors.blame("save_checkpoint: no module is attached: fit first") end
  checkpoint.save(state, path, o)
end

--- Requests a checkpoint at the end of this batch or epoch, from which a run can be resumed
--- exactly; after() is called when it is written. Options: weights_only; agreed: all ranks request
--- it, so that accumulated metrics and gradients of all ranks are saved.
function Trainer:request_checkpoint(path, save_options, after)
  local o = config.check(save_options, REQUEST, "request_checkpoint")
  config.argument(path, "string", "request_checkpoint", "the path")
  if not self.running then errors.blame("request_checkpoint: nothing is running") end
  if not o.agreed then checkpoint_parts.check_request(self.running, o.weights_only) end
  batch_boundary.request_save(self.running, path, o, after)
end

--- Returns the folder of the checkpoints of this run.
function Trainer:checkpoint_folder()
  for _, callback in ipairs(self.callbacks) do
    if callback.saves_checkpoints and callback.dirpath then return callback.dirpath end
  end
  if self.log_dir then return self.log_dir .. "/checkpoints" end
  return self.default_root_dir .. "/checkpoints"
end

--- Returns the path of the best checkpoint of the first callback that saves any, or nil.
function Trainer:best_model_path()
  local callback = self.checkpoint_callback
  return callback and callback.best_model_path
end

-- For modules and callbacks.

-- `self:log` and `self:log_dict` of the module.
Trainer._log, Trainer._log_dict = results.log, results.log_dict

-- `self:log_image` and kin.
class.add_later(Trainer, "_log_image _log_text _log_histogram",
  function() return require "ltrain.trainer.logged.media" end)

--- `self:manual_backward(loss)` of the module.
function Trainer:manual_backward(loss, ...)
  if not self.running then errors.blame("manual_backward: fit is not running") end
  optimize.manual_backward(self.running, loss, ...)
end

--- `self:sync_gradients(optimizer)` of the module.
function Trainer:sync_gradients(optimizer)
  if not self.running then errors.blame("sync_gradients: fit is not running") end
  for _, one in ipairs(optimizer and { optimizer } or self.optimizers) do
    shared_gradients.sync(self.running, one)
  end
end

--- In manual optimization with precision = "16-mixed": divides the gradients of an optimizer by the
--- scale of the loss. Otherwise its `step` or `clip_gradients` does this, once per step.
function Trainer:unscale_gradients(optimizer)
  if not self.running then errors.blame("unscale_gradients: fit is not running") end
  self.running.scaling:unscale(optimizer)
end

local function is_due(self, every)
  return every > 0 and (self.progress.stepped + 1) % every == 0
end

--- Returns whether step values of this batch are logged.
function Trainer:logs_this_step()
  local every, stops = self.log_every_n_steps, self.should_stop
  if self.running then stops = consensus.stops(self.running) end
  if not is_due(self, every) then return stops end
  self:settle_steps()
  return is_due(self, every) or stops
end

--- Waits until the device has reported which of the last steps it has skipped (precision =
--- "16-mixed", nonfinite = "skip"): until then global_step and step-wise schedulers may be up to
--- four steps ahead. Returns global_step.
function Trainer:settle_steps()
  if self.running then self.running.step_count:settle() end
  return self.global_step
end

--- Passes a row of metrics to every logger; `step` is its position on the axis. Rows of earlier
--- steps whose values are still on their way from a device come first.
function Trainer:log_to_loggers(row, step)
  local state = self.running
  local late = state and state.late_rows
  if not (late and late:follow(row, step)) then self:_send_row(row, step) end
end

-- Passes a row of metrics to every logger now.
function Trainer:_send_row(row, step)
  if #self.loggers == 0 then return end
  local full = { epoch = self.current_epoch }
  for name, value in pairs(row) do full[name] = value end
  step = math.tointeger(full.step) or step
  full.step = nil
  for _, logger in ipairs(self.loggers) do logger:log_metrics(full, step) end
end

--- Clears the logged metrics.
function Trainer:forget_metrics()
  for _, name in ipairs { "callback_metrics", "logged_metrics", "progress_bar_metrics" } do
    for key in pairs(self[name]) do self[name][key] = nil end
  end
end

--- Prints above the progress bar.
function Trainer:print(...)
  check_self(self, "print")
  console.print(...)
end

--- Prints a line to stderr.
function Trainer:say(text)
  check_self(self, "say")
  console.say(text)
end

-- A Trainer of a callback, within a fit of this one: options of the command line are this one's.
function Trainer:_within(own)
  local _ <close> = overrides.aside()
  return getmetatable(self)(own)
end

--- Prints a warning to stderr; the same one only once.
function Trainer:warn(text)
  self._reported = self._reported or {}
  if self._reported[text] then return end
  self._reported[text] = true
  console.say("warning: " .. text)
end

--- Prints a note to stderr: once, on rank 0.
function Trainer:note(text)
  if self._notes then return table.insert(self._notes, text) end
  self._reported = self._reported or {}
  if self._reported[text] or dist.rank() ~= 0 then return end
  self._reported[text] = true
  console.say("note: " .. text)
end

--- Returns the seconds of a monotonic clock.
function Trainer:now()
  local _, asked = sessions() -- a person thinks at a breakpoint: nothing was late
  return c.runtime.clock() - asked
end

--- Returns the same time on all ranks: rank 0's clock at the last step.
function Trainer:agreed_now()
  return self.running and consensus.now(self.running) or self:now()
end

return Trainer
