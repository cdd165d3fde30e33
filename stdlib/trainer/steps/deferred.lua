--- stdlib/trainer/steps/deferred.lua: whether a step's gradients are finite, on an asynchronous
-- device: the device knows it at once, the host a step later.
--
-- The device leaves out a step whose gradients are not finite, and all that follow; the host, which
-- would wait for all that was issued if it asked now, asks when the next step comes, or when
-- something looks at the weights (a save, a validation, an epoch's end). Only where that is enough:
-- in a fit that ends at the first such step (nonfinite = "stop"), with one optimizer of ours, a
-- batch a step, and nothing that must save the moment before the batch.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local loop = require "ltrain.trainer.loop"
local rerun = require "ltrain.trainer.steps.rerun"

local deferred = {}

--- Whether the step of this optimizer may be checked so; `norm`: of its gradients, 0-d.
function deferred.suits(state, optimizer, norm)
  -- A field costs next to nothing; what a tensor is on is made a text.
  if state.strategy.root_device == "cpu" then return false end
  return norm.device ~= "cpu" and optimizer.update == optimizer.checked_update
    and state.automatic and #state.optimizers == 1
    and state.trainer.accumulate_grad_batches == 1 and not state.loop.keeps_moments
    and not state.ranks.slices
    and (not state.ranks.many or state.strategy:is_replicated "gradient")
end

--- Whether the last step was left out.
function deferred.is_refused(state)
  local check = state.loop.check
  return check and check.flag:read() or false
end

--- Raises if it was. `own_names()` is called while the gradients of this rank's batch, which runs
--- again, are there; `names_of(own)` makes a text of what it returned, on all ranks.
function deferred.settle(state, own_names, names_of)
  if not deferred.is_refused(state) then return end
  local check = state.loop.check
  state.loop.check = false
  state.trainer.global_step = state.trainer.global_step - 1 -- it was counted as taken
  local own = {}
  local cause = rerun.cause(state, check.kept, function() own = own_names() end)
  errors.blame("optimizer_step: the gradients of %s are not finite (%s)%s: the weights are those "
    .. "before this step", names_of(own), check.place, cause)
end

--- Gives the step that is about to be taken what refuses it, and keeps its batch for the next one.
function deferred.check(state, optimizer, norm)
  local check = state.loop.check or { flag = c.runtime.flag(), found = nil }
  local found = c.isfinite(norm):logical_not()
  if check.found then found = check.found:logical_or(found) end
  check.flag:set(found)
  optimizer:check_by(found)
  check.found, check.place, check.kept = found, loop.place(state), rerun.kept_batch(state)
  state.loop.check = check
end

return deferred
