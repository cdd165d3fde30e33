--- stdlib/trainer/fit/ValidationSchedule.lua: after which batches a fit validates:
--- val_check_interval (batches, a fraction of an epoch, or a time) and check_val_every_n_epoch.
local consensus = require "ltrain.trainer.ranks.consensus"
local duration = require "ltrain.core.duration"
local errors = require "ltrain.core.errors"
local object = require "ltrain.trainer.object"

local ValidationSchedule = {}

--- That of the run `state`.
function ValidationSchedule.new(state)
  return object(ValidationSchedule, {
    _state = state, _trainer = state.trainer,
    _interval = nil, -- batches between validations; math.huge: at epochs' ends
    _seconds = nil, -- seconds between validations; nil: not by time
    _ended = false, -- when the last validation ended, where they come by time
  })
end

-- val_check_interval in batches.
local function batches_between(self, count)
  local interval, by_epoch = self._trainer.val_check_interval, self._trainer.check_val_every_n_epoch
  if self._seconds then return math.huge end
  if math.type(interval) == "integer" then
    if by_epoch and count and interval > count then
      errors.blame("val_check_interval: %d is more than the %d batches of an epoch; with "
        .. "check_val_every_n_epoch = false it counts across epochs", interval, count)
    end
    return interval
  elseif not by_epoch then
    errors.blame("val_check_interval: with check_val_every_n_epoch = false it must be an integer: "
      .. "got %s", interval)
  elseif interval == 1.0 then
    return math.huge
  elseif not count then
    errors.blame("val_check_interval: a fraction of a loader without length is unknown: got %s; "
      .. "give an integer or 1.0", interval)
  end
  return math.max(1, math.floor(count * interval))
end

--- Takes the Trainer's options for epochs of `count` batches; nil: their number is unknown.
function ValidationSchedule:set_batches(count)
  local interval = self._trainer.val_check_interval
  self._seconds = type(interval) ~= "number" and duration.seconds(interval) or nil
  self._interval = batches_between(self, count)
end

--- Training begins, or a validation has ended: time is measured from here. Ranks read a common
--- clock, which they know with the next step.
function ValidationSchedule:restart()
  if self._seconds then
    self._ended = not self._state.ranks.many and self._trainer:now()
  end
end

local function time_is_over(self)
  local now = consensus.now(self._state)
  self._ended = self._ended or now
  return now - self._ended >= self._seconds
end

--- Whether validation may come in the current epoch.
function ValidationSchedule:is_epoch_due()
  local every = self._trainer.check_val_every_n_epoch
  return not every or (self._trainer.current_epoch + 1) % every == 0
end

--- Whether validation comes after the batch that has just run, in an epoch in which it may come.
--- `is_last`: it was the last one of the epoch.
function ValidationSchedule:is_batch_due(is_last)
  if self._state.stopping:is_requested() then return true end
  if self._seconds then return time_is_over(self) end
  if self._interval == math.huge then return is_last end
  local progress = self._state.progress
  local count = self._trainer.check_val_every_n_epoch and progress.batch or progress.train_batches
  return count % self._interval == 0
end

return ValidationSchedule
