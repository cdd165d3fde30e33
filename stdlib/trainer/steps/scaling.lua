--- stdlib/trainer/steps/scaling.lua: fits whose precision has a GradScaler ("16-mixed").
--
-- The loss of each backward is scaled; before the hooks and the clipping of a step its gradients
-- are unscaled; a step whose gradients have overflowed is left out, and counts nowhere. The device
-- leaves it out by itself where the host needs to know it only at the next step, or when something
-- looks at the weights; else the host reads it before the step. Of several ranks all find the same:
-- what one has is in the sum of all.
local call = require "ltrain.trainer.call"
local errors = require "ltrain.core.errors"

local scaling = {}

--- The loss that backward begins with.
function scaling.scale(state, loss)
  local scaler = state.scaler
  return scaler and scaler:scale(loss) or loss
end

local function note_skip(state)
  local progress = state.progress
  progress.nonfinite = (progress.nonfinite or 0) + 1
end

--- Learns whether the last step, which the host has counted, was left out, and takes that back.
function scaling.settle(state)
  local optimizer = state.loop.unsettled
  if not optimizer then return end
  state.loop.unsettled = false
  if not state.scaler:left_out(optimizer) then return end
  optimizer:settle()
  local trainer, progress = state.trainer, state.progress
  trainer.global_step = trainer.global_step - 1
  if progress.pending then
    progress.pending.stepped = false
  else
    progress.stepped = progress.stepped - 1
  end
  note_skip(state)
end

-- Ends an iteration: the gradients that come next are scaled anew.
local function update(state)
  state.scaler:update()
  state.loop.unscaled = {}
end

--- Unscales the gradients of an optimizer, once for each of its steps.
function scaling.unscale(state, optimizer)
  local scaler, unscaled = state.scaler, state.loop.unscaled
  if not scaler or unscaled[optimizer] == "unscaled" then return end
  scaling.settle(state)
  if unscaled[optimizer] == "stepped" then update(state) end -- a second step in one batch
  scaler:unscale_(optimizer)
  state.loop.unscaled[optimizer] = "unscaled"
end

local function has_step_scheduler(state)
  for _, config in ipairs(state.schedulers) do
    if config.interval == "step" then return true end
  end
  return false
end

-- Whether nothing on the host depends on whether this step is taken, but counters.
local function can_wait(state)
  return state.automatic and #state.optimizers == 1 and state.strategy.root_device ~= "cpu"
    and not has_step_scheduler(state) and not call.defined(state, "on_after_optimizer_step")
    and not state.loop.keeps_moments and not state.ranks.slices
    and (not state.ranks.many or state.strategy:is_replicated "gradient")
end

--- Whether an optimizer, whose gradients are unscaled, may step.
function scaling.allows(state, optimizer)
  local scaler = state.scaler
  if can_wait(state) and scaler:check_on_device(optimizer) then
    state.loop.unsettled = optimizer
    return true
  end
  if not scaler:found(optimizer) then return true end
  note_skip(state)
  return false
end

--- An optimizer has stepped, or left out its step. In manual optimization the scale stays until
--- the end of the batch: gradients of other optimizers have it too.
function scaling.stepped(state, optimizer)
  if not state.scaler or state.loop.unscaled[optimizer] ~= "unscaled" then return end
  state.loop.unscaled[optimizer] = "stepped"
  if state.automatic then update(state) end
end

--- A batch of manual optimization has ended.
function scaling.end_batch(state)
  if state.scaler and next(state.loop.unscaled) then update(state) end
end

--- Raises where a step would compute gradients again that are unscaled already.
function scaling.check_closure(state)
  if not state.scaler then return end
  errors.blame("optimizer_step: the closure was called again: that is not supported with "
    .. "precision = '%s', whose gradients are scaled", state.precision.name)
end

--- ": the scale of the loss is 32768 now" for the report of steps that were not taken; or "".
function scaling.text(state)
  local scaler = state.scaler
  return scaler and ("; the scale of the loss is %.14g now"):format(scaler:get_scale()) or ""
end

--- Begins a fit.
function scaling.prepare(state)
  state.loop.unscaled, state.loop.unsettled = {}, false
end

return scaling
