--- stdlib/trainer/steps/LossScaling.lua: loss scaling with precision = "16-mixed": scales the loss,
--- unscales gradients, and skips overflowing steps (lt.GradScaler).
--
-- The loss of each backward is scaled; before the hooks and the clipping of a step its gradients
-- are unscaled; a step whose gradients have overflowed is left out, and counts nowhere. Of several
-- ranks all find the same: what one has is in the sum of all.
local errors = require "ltrain.core.errors"
local object = require "ltrain.trainer.object"

local LossScaling = {}

--- That of the run `state`; it does nothing without a scaler.
function LossScaling.new(state)
  return object(LossScaling, {
    _state = state, _scaler = state.scaler,
    _unscaled = {}, -- optimizer -> "unscaled" or "stepped" since the scale's update
  })
end

--- The loss that backward begins with.
function LossScaling:scale(loss)
  return self._scaler and self._scaler:scale(loss) or loss
end

-- Ends an iteration: the gradients that come next are scaled anew.
local function update(self)
  self._scaler:update()
  self._unscaled = {}
end

--- Unscales the gradients of an optimizer, once for each of its steps.
function LossScaling:unscale(optimizer)
  if not self._scaler or self._unscaled[optimizer] == "unscaled" then return end
  if self._unscaled[optimizer] == "stepped" then update(self) end -- a second step in one batch
  self._scaler:unscale_(optimizer)
  self._unscaled[optimizer] = "unscaled"
end

--- Whether an optimizer, whose gradients are unscaled, may step.
function LossScaling:allows(optimizer)
  local count = self._state.step_count
  if count:suits(optimizer) and self._scaler:check_later(optimizer, count:listener(optimizer)) then
    return true
  end
  if not self._scaler:found(optimizer) then return true end
  count:skip()
  return false
end

--- An optimizer has stepped, or left out its step. In manual optimization the scale stays until
--- the end of the batch: gradients of other optimizers have it too.
function LossScaling:end_step(optimizer)
  if not self._scaler or self._unscaled[optimizer] ~= "unscaled" then return end
  self._unscaled[optimizer] = "stepped"
  if self._state.automatic then update(self) end
end

--- A batch of manual optimization has ended.
function LossScaling:end_batch()
  if self._scaler and next(self._unscaled) then update(self) end
end

--- Raises where a step would compute gradients again that are unscaled already.
function LossScaling:check_closure()
  if not self._scaler then return end
  errors.blame("optimizer_step: the closure was called again: that is not supported with "
    .. "precision = '%s', whose gradients are scaled", self._state.precision.name)
end

--- "; the scale of the loss is 32768 now" for the report of steps that were not taken; or "".
function LossScaling:text()
  return self._scaler and ("; the scale of the loss is %.14g now"):format(self._scaler:get_scale())
    or ""
end

return LossScaling
