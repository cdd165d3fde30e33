--- stdlib/trainer/steps/late.lua: steps of a fit that the device leaves out by itself
--- (precision = "16-mixed", nonfinite = "skip"), and the Trainer hears of it some steps later.
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

--- Whether the host may hear of a step of this fit later.
function late.is_possible(state)
  local optimizer = #state.optimizers == 1 and state.optimizers[1]
  return state.automatic and optimizer and state.loop.held[optimizer].usual
    and state.strategy.root_device ~= "cpu"
    and schedulers_can(state) and not call.defined(state, "on_after_optimizer_step")
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

-- Takes back what counted a step that was left out; `is_last`: no other has come since.
local function hear(state, text, is_last)
  local trainer, progress, current = state.trainer, state.progress, state.loop
  trainer.global_step = trainer.global_step - 1
  if current.in_batch then current.in_batch = current.in_batch - 1 end
  if is_last and progress.pending then
    progress.pending.stepped = false
  else
    progress.stepped = progress.stepped - 1
  end
  late.note(state, text)
end

--- What the optimizer calls when the step that is about to be made was left out; `text` as in note.
function late.listener(state, text)
  state.loop.unsettled = state.optimizers[1]
  return function(_, is_last) hear(state, text, is_last) end
end

--- Waits until it is known which steps were taken.
function late.settle(state)
  local optimizer = state.loop.unsettled
  if not optimizer then return end
  state.loop.unsettled = false
  optimizer:settle()
end

--- Between batches: what is known of steps some batches ago.
function late.poll(state)
  local optimizer = state.loop.unsettled
  if optimizer then optimizer:hear() end
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

--- Calls `fn`, which moves the schedulers after a step.
function late.move_schedulers(state, fn, ...)
  local optimizer = state.loop.unsettled
  if not optimizer then return fn(...) end
  left_out.count(optimizer._late, optimizer.param_groups, saved_schedulers(state), fn, ...)
end

return late
