--- stdlib/trainer/fit/Stopping.lua: when a fit ends: at max_epochs or max_steps, or earlier where
--- `trainer.should_stop` asks for it, but not before min_epochs and min_steps.
--
-- A device may still report that it has left out some of the last steps: the step count is settled
-- before a limit counts as reached.
local consensus = require "ltrain.trainer.ranks.consensus"
local object = require "ltrain.trainer.object"

local Stopping = {}

--- That of the run `state`.
function Stopping.new(state)
  return object(Stopping, { _state = state, _trainer = state.trainer, _has_warned = false })
end

local function minima_met(trainer)
  local options = trainer.options
  return trainer.current_epoch >= (options.min_epochs or 0)
    and trainer.global_step >= (options.min_steps or 0)
end

local function max_steps_reached(trainer)
  return trainer.max_steps ~= -1 and trainer.global_step >= trainer.max_steps
end

--- Called by all ranks: they stop together.
function Stopping:agree() consensus.to_stop(self._state) end

-- Whether max_steps is reached by the settled step count.
local function is_out_of_steps(trainer)
  if not max_steps_reached(trainer) then return false end
  trainer:settle_steps()
  return max_steps_reached(trainer)
end

--- Whether a request to stop takes effect now.
function Stopping:is_requested()
  if not (consensus.stops(self._state) and minima_met(self._trainer)) then return false end
  self._trainer:settle_steps()
  return minima_met(self._trainer)
end

--- Whether no other batch follows in this epoch.
function Stopping:ends_epoch()
  return is_out_of_steps(self._trainer) or self:is_requested()
end

local function report_minima(self)
  local trainer, options = self._trainer, self._trainer.options
  if self._has_warned or not trainer.should_stop or minima_met(trainer) then return end
  self._has_warned = true
  trainer:say(("stop requested at epoch %d, step %d: continues to %d epochs and %d steps"):format(
    trainer.current_epoch, trainer.global_step, options.min_epochs or 0, options.min_steps or 0))
end

--- Whether no other epoch follows; says once that a request to stop has to wait.
function Stopping:ends_fit()
  local trainer = self._trainer
  if is_out_of_steps(trainer) then return true end
  if trainer.max_epochs ~= -1 and trainer.current_epoch >= trainer.max_epochs then return true end
  report_minima(self)
  return self:is_requested()
end

return Stopping
