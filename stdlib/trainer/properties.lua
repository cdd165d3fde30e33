--- stdlib/trainer/properties.lua: fields of a Trainer that are computed when they are read.
local Profiler = require "ltrain.profiler.Profiler"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local interrupt = require "ltrain.core.interrupt"
local option_fields = require "ltrain.trainer.setup.option_fields"
local sources = require "ltrain.trainer.data.sources"
local version = require "ltrain.loggers.version"

local properties = {}

local SIGTERM <const> = 15

-- The callbacks that have a mark, in the Trainer's order.
local function marked(trainer, mark)
  local found = {}
  for _, callback in ipairs(rawget(trainer, "callbacks") or {}) do
    if callback[mark] then found[#found + 1] = callback end
  end
  return found
end

--- The folder of the first logger that writes files: chosen when it is first read, at the latest
--- when a run begins; nil without such a logger.
function properties.log_dir(trainer)
  local loggers = rawget(trainer, "loggers") or {}
  version.choose_all(loggers)
  for _, logger in ipairs(loggers) do
    if logger.log_dir then return logger.log_dir end
  end
end

--- The values that were passed to the loggers last, by name; waits for those on their way from a
--- device.
function properties.logged_metrics(trainer)
  local state = rawget(trainer, "running")
  if state and state.late_rows then state.late_rows:settle() end
  return rawget(trainer, "_logged_metrics")
end

--- The callbacks that save checkpoints, a list.
function properties.checkpoint_callbacks(trainer) return marked(trainer, "saves_checkpoints") end

--- The first of them, or nil.
function properties.checkpoint_callback(trainer) return trainer.checkpoint_callbacks[1] end

--- The EarlyStoppings, a list.
function properties.early_stopping_callbacks(trainer) return marked(trainer, "stops_early") end

--- The first of them, or nil.
function properties.early_stopping_callback(trainer) return trainer.early_stopping_callbacks[1] end

--- The numbers of the devices that the ranks of this machine compute on, in the order of the ranks
--- (under dp, ddp2 and xla those of this rank); those of ranks on the CPU are 0, 1, ...
function properties.device_ids(trainer)
  local strategy, world, ids = trainer.strategy, dist.world(), {}
  for k, device in ipairs(strategy.splits_batches and strategy.devices or {}) do
    ids[k] = math.tointeger(device:match ":(%d+)$") or k - 1
  end
  for k = 1, strategy.partitions > 1 and strategy.partitions or 0 do ids[k] = k - 1 end
  if ids[1] then return ids end
  local count = world.ranks > 1 and world.local_ranks or strategy.ranks or 1
  for rank = 0, count - 1 do
    local device = count == 1 and strategy.root_device or strategy.accelerator:device(rank)
    ids[rank + 1] = math.tointeger(device:match ":(%d+)$") or rank
  end
  return ids
end

--- How many they are.
function properties.num_devices(trainer) return #trainer.device_ids end

--- Whether the Trainer validates or tests, also for the check before training.
function properties.evaluating(trainer)
  return trainer.validating or trainer.testing or trainer.sanity_checking or false
end

--- Whether the fit that runs validates: there is a validation_step, and data for it.
function properties.enable_validation(trainer)
  return trainer.running ~= nil and sources.validates(trainer.running)
end

--- The number of optimizer steps of the whole fit; math.huge if it is unknown.
function properties.estimated_stepping_batches(trainer)
  local state = trainer.running
  if state and state.fn == "fit" and not state.data.train then sources.load_train(state) end
  local count = trainer.num_training_batches or math.huge
  local steps = math.huge
  if trainer.max_epochs ~= -1 and count ~= math.huge then
    steps = math.ceil(count / trainer.accumulate_grad_batches) * math.max(trainer.max_epochs, 1)
  end
  return trainer.max_steps ~= -1 and math.min(trainer.max_steps, steps) or steps
end

--- Whether this process was asked to end by SIGTERM.
function properties.received_sigterm()
  return interrupt.received(SIGTERM)
end

--- What times parts of the run that a script names (stdlib/profiler/Profiler.lua); the option
--- `profiler` says whether it does.
function properties.profiler(trainer)
  local profiler = rawget(trainer, "_profiler") or Profiler()
  rawset(trainer, "_profiler", profiler)
  return profiler
end

--- The first logger, or nil.
function properties.logger(trainer)
  return (rawget(trainer, "loggers") or {})[1]
end

local SETTERS <const> = {}

function SETTERS.logger(trainer, value)
  trainer.loggers = value and { value } or {}
end

local function assign(trainer, name, value)
  if SETTERS[name] then return SETTERS[name](trainer, value) end
  option_fields.assign(trainer, name, value)
end

-- The Trainer's own fields that are nil at times: nobody has asked for them in vain.
local NIL_AT_TIMES <const> = { ckpt_path = true, epochs_by_default = true, last_run = true,
  left_open = true, progress = true, running = true, stepped = true, train_results = true }

--- A class whose objects have these fields, and each option as one.
function properties.give(class)
  class.__index = function(self, key)
    local property = properties[key]
    if property and key ~= "give" then return property(self) end
    local value = class[key]
    if value ~= nil then return value end
    if option_fields.is_option(key) then return option_fields.read(self, key) end
    local is_name = type(key) == "string" and key:sub(1, 1) ~= "_" and not NIL_AT_TIMES[key]
    local elsewhere = is_name and require "ltrain.core.foreign_names" -- a field asked for in vain
    local said = elsewhere and elsewhere.rows("Trainer")[key]
    if said then errors.blame("Trainer: there is no trainer.%s; %s", key, said) end
  end
  class.__newindex = assign
  return class
end

return properties
