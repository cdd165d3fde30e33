--- stdlib/trainer/steps/StepCount.lua: steps of a fit that the device leaves out by
--- itself (precision = "16-mixed", nonfinite = "skip"), of which the Trainer hears some steps later.
--
-- Until then counters and schedulers of steps count them as taken (optim/left_out.lua); what is
-- shown, saved or decided by a count is settled first, which waits. Where a hook or a scheduler of
-- the script's own must know it at once, the host reads it before the step.
local Module = require "ltrain.nn.Module"
local call = require "ltrain.trainer.call"
local left_out = require "ltrain.optim.left_out"
local notices = require "ltrain.trainer.ranks.notices"

local late = {}

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
    or not call.overrides(state.module, "lr_scheduler_step", Module)
end

--- Whether the host may hear of a step of an optimizer later. In manual optimization schedulers are
--- the script's.
function late.is_possible(state, optimizer)
  return state.loop.held[optimizer].usual and state.strategy.root_device ~= "cpu"
    and (not state.automatic or #state.optimizers == 1 and schedulers_can(state))
    and not call.defined(state, "on_after_optimizer_step")
    and not state.loop.keeps_moments and not state.ranks.slices
    and (not state.ranks.many or state.strategy:is_replicated "gradient")
end

--- Counts a step that was not taken; `text` (optional): what is said of the first one.
function late.note(state, text)
  local progress = state.progress
  progress.nonfinite = (progress.nonfinite or 0) + 1
  if not text or state.loop.warned_nonfinite then return end
  state.loop.warned_nonfinite = true
  notices.add(state, text)
end

--- Begins a batch: `taken` counts its steps, of which some may turn out to be left out.
function late.begin_batch(state) state.loop.taken = { steps = 0, counted = false } end

--- Whether the running batch has stepped, as far as that is known.
function late.has_stepped(state) return state.loop.taken.steps > 0 end

--- The batch that has ended counts as one that has stepped.
function late.count_batch(state)
  state.progress.stepped = state.progress.stepped + 1
  state.loop.taken.counted = true
end

-- Takes back what counted a step of the batch of `taken`, which was left out.
local function hear(state, text, taken)
  local trainer, progress, current = state.trainer, state.progress, state.loop
  trainer.global_step = trainer.global_step - 1
  if current.in_batch then current.in_batch = current.in_batch - 1 end
  taken.steps = taken.steps - 1
  if taken.steps == 0 and taken.counted then
    progress.stepped = progress.stepped - 1
  elseif taken.steps == 0 and progress.pending then
    progress.pending.stepped = false
  end
  late.note(state, text)
end

--- What an optimizer calls when the step that is about to be made was left out; `text` as in note.
function late.listener(state, optimizer, text)
  local list, taken = state.loop.unsettled or {}, state.loop.taken
  if not list[optimizer] then
    list[#list + 1], list[optimizer] = optimizer, true
    state.loop.unsettled = list
  end
  return function() hear(state, text, taken) end
end

--- Waits until it is known which steps were taken.
function late.settle(state)
  local list = state.loop.unsettled or {}
  state.loop.unsettled = false
  for _, optimizer in ipairs(list) do optimizer:settle() end
end

--- Between batches: what is known of steps some batches ago.
function late.poll(state)
  for _, optimizer in ipairs(state.loop.unsettled or {}) do optimizer:hear() end
end

-- Puts the schedulers back.
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
function late.move_schedulers(state, fn, ...)
  local optimizer = state.loop.unsettled and state.optimizers[1]
  if not optimizer then return fn(...) end
  left_out.count(optimizer._late, optimizer.param_groups, saved_schedulers(state), fn, ...)
end

return late
