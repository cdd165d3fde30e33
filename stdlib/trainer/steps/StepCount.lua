--- stdlib/trainer/steps/StepCount.lua: counts the optimizer steps of a fit.
--
-- A device may skip a step by itself (precision = "16-mixed", nonfinite = "skip"), which the host
-- learns a few steps later.
-- Until then counters and schedulers of steps count it as taken (optim/skipped_steps.lua); what is
-- shown, saved or decided by a count is settled first, which waits. Where a hook or a scheduler of
-- the script's own must know it at once, the host reads it before the step.
local Module = require "ltrain.nn.Module"
local hook_calls = require "ltrain.trainer.hook_calls"
local left_out = require "ltrain.optim.skipped_steps"
local notices = require "ltrain.trainer.ranks.rank_warnings"
local object = require "ltrain.trainer.object"

local StepCount = {}

--- That of the run `state`.
function StepCount.new(state)
  return object(StepCount, {
    _state = state,
    _taken = { steps = 0, counted = false }, -- by the running batch, and whether it has ended
    _uncounted = 0, -- taken by optimizer_step, which has not ended
    _unsettled = {}, -- optimizers some of whose steps may have been left out; each is a key, too
    _has_warned = false, -- that a step was not taken
  })
end

--- Begins a batch: some of its steps may turn out to be left out.
function StepCount:begin_batch() self._taken = { steps = 0, counted = false } end

--- An optimizer has stepped.
function StepCount:add()
  self._taken.steps = self._taken.steps + 1
  self._state.trainer.global_step = self._state.trainer.global_step + 1
end

--- It has done so in optimizer_step, where global_step is that of the step that it makes, as in
--- Lightning.
function StepCount:hold_back()
  self._state.trainer.global_step = self._state.trainer.global_step - 1
  self._uncounted = self._uncounted + 1
end

--- optimizer_step has ended; returns whether the batch has stepped, as has_stepped.
function StepCount:end_step()
  self._state.trainer.global_step = self._state.trainer.global_step + self._uncounted
  self._uncounted = 0
  return self._taken.steps > 0
end

--- Whether the running batch has stepped, as far as that is known.
function StepCount:has_stepped() return self._taken.steps > 0 end

--- The batch that has ended counts as one that has stepped.
function StepCount:end_batch()
  self._state.progress.stepped = self._state.progress.stepped + 1
  self._taken.counted = true
end

--- Whether a warning of a step that was not taken has been printed.
function StepCount:has_warned() return self._has_warned end

--- A step was not taken; `text` (optional): the warning of the first one.
function StepCount:skip(text)
  local progress = self._state.progress
  progress.nonfinite = (progress.nonfinite or 0) + 1
  if not text or self._has_warned then return end
  self._has_warned = true
  notices.add(self._state, text)
end

-- Whether a scheduler of steps can be put back to where it was.
local function can_go_back(config)
  local scheduler = config.scheduler
  return not config.reduce_on_plateau and type(scheduler) == "table"
    and scheduler.state_dict ~= nil and scheduler.load_state_dict ~= nil
end

local function schedulers_can(state)
  for _, config in ipairs(state.schedulers) do
    if config.interval == "step" and not can_go_back(config) then return false end
  end
  return #state.schedulers == 0
    or not hook_calls.overrides(state.module, "lr_scheduler_step", Module)
end

--- Whether the host may hear of a step of an optimizer later. In manual optimization schedulers are
--- the script's.
function StepCount:suits(optimizer)
  local state = self._state
  return state.optimizer_steps:is_usual(optimizer) and state.strategy.root_device ~= "cpu"
    and (not state.automatic or #state.optimizers == 1 and schedulers_can(state))
    and not hook_calls.defined(state, "on_after_optimizer_step")
    and not state.resume_point:is_kept() and not state.ranks.slices
    and (not state.ranks.many or state.strategy:is_replicated "gradient")
end

-- Takes back what counted a step of the batch of `taken`, which was left out.
local function take_back(self, text, taken)
  local trainer, progress = self._state.trainer, self._state.progress
  trainer.global_step = trainer.global_step - 1
  self._state.resume_point:take_back_step()
  taken.steps = taken.steps - 1
  if taken.steps == 0 and taken.counted then
    progress.stepped = progress.stepped - 1
  elseif taken.steps == 0 and progress.pending then
    progress.pending.stepped = false
  end
  self:skip(text)
end

--- What an optimizer calls when the step that is about to be made was left out; `text` as in skip.
function StepCount:listener(optimizer, text)
  local list, taken = self._unsettled, self._taken
  if not list[optimizer] then list[#list + 1], list[optimizer] = optimizer, true end
  return function() take_back(self, text, taken) end
end

--- Waits until it is known which steps were taken.
function StepCount:settle()
  local list = self._unsettled
  if #list == 0 then return end
  self._unsettled = {}
  for _, optimizer in ipairs(list) do optimizer:settle() end
end

--- Between batches: what is known of steps some batches ago.
function StepCount:poll()
  for _, optimizer in ipairs(self._unsettled) do optimizer:hear() end
end

-- What puts the schedulers back.
local function saved_schedulers(state)
  local kept = {}
  for _, config in ipairs(state.schedulers) do
    if config.interval == "step" then kept[config.scheduler] = config.scheduler:state_dict() end
  end
  return function()
    for scheduler, before in next, kept do scheduler:load_state_dict(before) end
  end
end

--- Calls `fn`, which moves the schedulers after a step of automatic optimization.
function StepCount:move_schedulers(fn, ...)
  local state = self._state
  local optimizer = #self._unsettled > 0 and state.optimizers[1]
  if not optimizer then return fn(...) end
  left_out.count(optimizer._deferred, optimizer.param_groups, saved_schedulers(state), fn, ...)
end

--- Warns of the steps of the epoch that were not taken; ranks have left out the same ones.
function StepCount:report()
  local state, count = self._state, self._state.progress.nonfinite or 0
  if count == 0 then return end
  notices.add(state, ("epoch %d: %d optimizer step%s not taken: gradients were not finite%s")
    :format(state.trainer.current_epoch, count, count == 1 and "" or "s", state.scaling:text()))
end

return StepCount
