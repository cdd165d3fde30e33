--- stdlib/trainer/ranks/StepTimes.lua: how long this rank's batches take without waiting for other
--- ranks, and a warning of a rank that has been much slower than the others for a minute.
--
-- Of each batch the clock is read before and after; from time to time, when the clock that all
-- ranks read alike (ranks/consensus.lua) says so, they exchange the means. On a GPU the host does
-- not see how long kernels wait for those of other GPUs: there the times are those of the host.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local dist = require "ltrain.dist"
local exchange = require "ltrain.trainer.ranks.exchange"
local object = require "ltrain.trainer.object"
local step_times = require "ltrain.runs.step_times"

local StepTimes = {}

--- Seconds between exchanges, and after which a rank that is slow all the time is reported.
StepTimes.limits = { period = 10, slow_for = 60 }

--- Those of the fit `state`.
function StepTimes.new(state)
  return object(StepTimes, {
    _state = state,
    _began = 0.0, _waited = 0.0, -- the clock, and what was waited for others, before the batch
    _busy = 0.0, _batches = 0, -- since the last exchange
    _due = nil, -- when the next exchange is
    _slow_since = {}, -- rank -> when it was first found to be slow
    _reported = {}, -- rank -> whether it was since
  })
end

--- A batch is about to be read.
function StepTimes:begin_batch()
  self._began, self._waited = c.runtime.clock(), c.dist.waited()
end

local function report(self, rank, seconds, ratio, slow_for)
  local host = self._state.trainer.world.hosts[rank + 1]
  console.say(("warning: rank %d on %s is slow: for %.0f s its batches have taken %.3g s without "
    .. "waiting, %.1f times the median of the other ranks"):format(rank, host, slow_for, seconds,
    ratio))
end

--- Takes the mean times of a batch of all ranks, at the time `now`; reports ranks that are slow.
function StepTimes:judge(now, times)
  for i, seconds in ipairs(times) do
    local rank, ratio = i - 1, step_times.ratio(times, i)
    if not ratio or ratio < step_times.SLOW then
      self._slow_since[rank], self._reported[rank] = nil, nil
    else
      local since = self._slow_since[rank] or now
      self._slow_since[rank] = since
      if now - since >= StepTimes.limits.slow_for and not self._reported[rank] then
        self._reported[rank] = true
        report(self, rank, seconds, ratio, now - since)
      end
    end
  end
end

--- It has been read and computed, with the step that belongs to it.
function StepTimes:end_batch()
  local state = self._state
  local busy = math.max(c.runtime.clock() - self._began - (c.dist.waited() - self._waited), 0)
  self._busy, self._batches = self._busy + busy, self._batches + 1
  local rows = state.system_rows
  if rows then rows.busy = rows.busy + busy end
  local now = state.ranks.agreed.now
  self._due = self._due or now + StepTimes.limits.period
  if now < self._due then return end
  local mean = self._busy / self._batches
  self._due, self._busy, self._batches = now + StepTimes.limits.period, 0.0, 0
  self:judge(now, exchange("step times", dist.all_gather, mean))
end

return StepTimes
