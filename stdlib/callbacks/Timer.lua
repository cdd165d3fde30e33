--- stdlib/callbacks/Timer.lua: stops the fit after a time limit. The Trainer's max_time creates
--- one.
local Callback = require "ltrain.core.Callback"
local config = require "ltrain.core.config"
local duration = require "ltrain.core.duration"
local schema = require "ltrain.core.schema"

local Timer = Callback:extend("Timer")

--- It runs on all ranks: the first one whose time is up stops the fit.
Timer.all_ranks = true

local OPTIONS <const> = {
  duration = duration.option("seconds, 'DD:HH:MM:SS' or { weeks =, days =, hours =, minutes =, "
    .. "seconds = }; without it, time is only measured"),
  interval = { type = "string", default = "step", choices = { "step", "epoch" },
    doc = "when to check" },
  verbose = { type = "boolean", default = true, doc = "print when the time is up" },
}

Timer.__arguments = "| duration interval verbose"

--- Timer{duration = 3600}, Timer{duration = "00:12:00:00"}, Timer{hours = 12}
function Timer:init(options)
  if duration.is_table(options) then options = { duration = options } end
  local o = config.check(options, OPTIONS, "callbacks.Timer")
  for name, value in next, o do self[name] = value end
  self.duration = duration.seconds(o.duration)
  self.before = 0.0 -- seconds of earlier runs, from a checkpoint
end

function Timer:state_dict()
  return { elapsed = self:time_elapsed() }
end

function Timer:load_state_dict(state)
  schema.check(state, { elapsed = "number" }, "Timer")
  self.before = state.elapsed
end

--- Returns the seconds of training so far.
function Timer:time_elapsed()
  return self.before + (self.started and self.clock() - self.started or 0.0)
end

--- Returns the remaining seconds; nil without a duration.
function Timer:time_remaining()
  return self.duration and math.max(self.duration - self:time_elapsed(), 0.0)
end

local function check(self, trainer)
  if not self.duration or self:time_elapsed() < self.duration or trainer.should_stop then return end
  trainer.should_stop = true
  if self.verbose then
    trainer:say(("Timer: %.0f s are over: stops in epoch %d"):format(self.duration,
      trainer.current_epoch))
  end
end

function Timer:on_train_start(trainer)
  self.clock = function() return trainer:now() end
  self.started = self.clock()
end

function Timer:on_train_end()
  self.before, self.started = self:time_elapsed(), nil
end

function Timer:on_train_batch_end(trainer)
  if self.interval == "step" then check(self, trainer) end
end

function Timer:on_train_epoch_end(trainer)
  if self.interval == "epoch" then check(self, trainer) end
end

return Timer
