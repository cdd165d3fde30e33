--- stdlib/trainer/properties.lua: fields of a Trainer that are found when they are read.
local interrupt = require "ltrain.core.interrupt"
local sources = require "ltrain.trainer.data.sources"
local version = require "ltrain.loggers.version"

local properties = {}

local SIGTERM <const> = 15

local function first_callback(trainer, is_wanted)
  for _, callback in ipairs(rawget(trainer, "callbacks") or {}) do
    if is_wanted(callback) then return callback end
  end
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

--- The first callback that saves checkpoints, or nil.
function properties.checkpoint_callback(trainer)
  return first_callback(trainer, function(callback) return callback.saves_checkpoints end)
end

--- The first EarlyStopping, or nil.
function properties.early_stopping_callback(trainer)
  return first_callback(trainer, function(callback) return callback.stops_early end)
end

--- Whether the fit that runs validates: there is a validation_step, and data for it.
function properties.enable_validation(trainer)
  return trainer.running ~= nil and sources.validates(trainer.running)
end

--- Whether this process was asked to end by SIGTERM.
function properties.received_sigterm()
  return interrupt.received(SIGTERM)
end

--- A class whose objects have these fields.
function properties.give(class)
  class.__index = function(self, key)
    local property = properties[key]
    if property and key ~= "give" then return property(self) end
    return class[key]
  end
  return class
end

return properties
