--- stdlib/trainer/steps/LossScaling.lua: fits whose precision has a GradScaler ("16-mixed").
--
-- The loss of each backward is scaled; before the hooks and the clipping of a step its gradients
-- are unscaled; a step whose gradients have overflowed is left out, and counts nowhere. Of several
-- ranks all find the same: what one has is in the sum of all.
local errors = require "ltrain.core.errors"
local late = require "ltrain.trainer.steps.StepCount"

local scaling = {}

--- The loss that backward begins with.
function scaling.scale(state, loss)
  local scaler = state.scaler
  return scaler and scaler:scale(loss) or loss
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
  if unscaled[optimizer] == "stepped" then update(state) end -- a second step in one batch
  scaler:unscale_(optimizer)
  state.loop.unscaled[optimizer] = "unscaled"
end

--- Whether an optimizer, whose gradients are unscaled, may step.
function scaling.allows(state, optimizer)
  local scaler = state.scaler
  if late.is_possible(state, optimizer)
    and scaler:check_later(optimizer, late.listener(state, optimizer)) then
    return true
  end
  if not scaler:found(optimizer) then return true end
  late.note(state)
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
  state.loop.unscaled = {}
end

return scaling
