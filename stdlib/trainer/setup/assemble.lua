--- stdlib/trainer/setup/assemble.lua: builds the parts of a Trainer (callbacks, loggers, strategy,
--- ...) from its options.
local Callback = require "ltrain.core.Callback"
local Logger = require "ltrain.core.Logger"
local class = require "ltrain.core.class"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"
local logger_words = require "ltrain.loggers.logger_names"
local option_fields = require "ltrain.trainer.setup.option_fields"
local option_rules = require "ltrain.trainer.setup.option_rules"
local options = require "ltrain.trainer.setup.options"
local overrides = require "ltrain.trainer.setup.overrides"

local assemble = {}

-- A list from one object, a list or nothing.
local function as_list(value)
  if value == nil then return {} end
  if type(value) ~= "table" or getmetatable(value) ~= nil then return { value } end
  return table.move(value, 1, elements.count(value), 1, {})
end

-- How many callbacks are of one of the library's classes.
local function count(list, name)
  local wanted, n = require("ltrain.callbacks." .. name), 0
  for _, callback in ipairs(list) do
    if class.is_a(callback, wanted) then n = n + 1 end
  end
  return n
end

-- The default callback of an option, unless one of its class is there or it is turned off.
local function add_default(list, o, option, name, own_options)
  local there = count(list, name) > 0
  if o[option] and not there then
    list[#list + 1] = require("ltrain.callbacks." .. name)(own_options)
  elseif not o[option] and there then
    errors.blame("Trainer: %s, but there is a %s among the callbacks",
      o.barebones and "barebones = true" or option .. " = false", name)
  end
end

--- Callbacks that save checkpoints come last; the others keep their order.
function assemble.order(list)
  local ordered = {}
  for _, saves_last in ipairs { false, true } do
    for _, callback in ipairs(list) do
      if (callback.saves_checkpoints or false) == saves_last then
        ordered[#ordered + 1] = callback
      end
    end
  end
  return ordered
end

local function add_timer(list, trainer, o)
  if not o.max_time then return end
  if count(list, "Timer") > 0 then
    trainer:note "max_time has no effect: there is a Timer among the callbacks"
  else
    list[#list + 1] = require "ltrain.callbacks.Timer" { duration = o.max_time }
  end
end

--- Sets trainer.callbacks.
function assemble.callbacks(trainer, o)
  local list = {}
  for i, callback in elements.each(as_list(o.callbacks)) do list[i] = Callback.adopt(callback) end
  table.move(overrides.callbacks, 1, #overrides.callbacks, #list + 1, list)
  if count(list, "ProgressBar") > 1 then
    errors.blame("Trainer: there are %d progress bars among the callbacks: give one of them",
      count(list, "ProgressBar"))
  end
  add_default(list, o, "enable_progress_bar", "ProgressBar")
  add_default(list, o, "enable_model_summary", "ModelSummary")
  add_timer(list, trainer, o)
  if not (o.fast_dev_run and o.enable_checkpointing) then
    add_default(list, o, "enable_checkpointing", "ModelCheckpoint", { save_last = true })
  end
  trainer.callbacks = assemble.order(list)
end

-- What reads the folder of a run finds metrics.csv there: the loggers that write into a folder are
-- joined by one that writes it, unless they have one.
local function add_csv(list)
  local first
  for _, logger in ipairs(list) do
    first = first or logger.root_dir and logger
    local same = first and logger.root_dir == first.root_dir and logger.version == first.version
    if same and logger.file == "metrics.csv" then return end
  end
  if not first then return end
  list[#list + 1] = require "ltrain.loggers.CSVLogger" { save_dir = first.save_dir,
    name = first.name, version = first.version,
    flush_logs_every_n_steps = first.flush_logs_every_n_steps, flush_secs = first.flush_secs }
end

-- The folder that the command line names is that of the first Trainer's run.
local function take_run_dir(list)
  local folder = overrides.run_dir
  if not folder then return end
  overrides.run_dir = nil
  local first
  for _, logger in ipairs(list) do
    first = first or logger.root_dir and logger
    if first and logger.root_dir == first.root_dir and logger.version == first.version then
      logger.log_dir = folder
    end
  end
  if first then return end
  local logger = logger_words.logger("csv", ".")
  logger.log_dir = folder
  list[#list + 1] = logger
end

--- Sets trainer.loggers.
function assemble.loggers(trainer, o)
  local list = {}
  if not o.fast_dev_run and not logger_words.is_none(o.logger) then list = as_list(o.logger) end
  for i, logger in elements.each(list) do
    list[i] = logger_words.logger(logger, o.default_root_dir)
    if not class.is_a(list[i], Logger) then
      errors.blame("Trainer: logger %s", logger_words.wrong(logger))
    end
  end
  add_csv(list)
  if not o.fast_dev_run then take_run_dir(list) end
  trainer.loggers = list
end

-- What barebones and fast_dev_run do to the options; overfit_batches has its own limits in fit.
local function simplify(o)
  if o.barebones then
    for name, value in next, option_rules.barebones do o[name] = value end
  end
  if o.fast_dev_run == 0 then o.fast_dev_run = false end
  local n = o.fast_dev_run == true and 1 or o.fast_dev_run
  if not n then return end
  for _, kind in ipairs { "train", "val", "test", "predict" } do
    o["limit_" .. kind .. "_batches"] = n
  end
  o.max_steps, o.max_epochs, o.num_sanity_val_steps = n, 1, 0
  o.val_check_interval, o.check_val_every_n_epoch = 1.0, 1
end

--- Sets the fields that are options, and the number of epochs.
function assemble.limits(trainer, o)
  simplify(o)
  if o.check_val_every_n_epoch == false then o.check_val_every_n_epoch = nil end
  option_fields.fix(trainer, "fast_dev_run", o.fast_dev_run and true or false)
  for name, row in next, options do
    if row.set == "field" then trainer[name] = o[name] end
  end
  if not o.max_epochs then
    trainer.max_epochs = (o.max_steps ~= -1 or o.max_time) and -1 or 1000
    trainer.epochs_by_default = trainer.max_epochs == 1000
  end
end

return assemble
