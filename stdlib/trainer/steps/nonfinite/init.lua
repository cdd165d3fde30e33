--- stdlib/trainer/steps/nonfinite/init.lua: a fit's checks for NaN and infinities: steps whose
--- gradients are not finite are not taken, and weights that are not finite are not saved.
--
-- The strategy's grad_norm of an optimizer before each of its steps; where gradients were clipped
-- by their norm, that norm says it. It is finite on all ranks or on none: they have the same
-- answer.
local DeferredChecks = require "ltrain.trainer.steps.nonfinite.DeferredChecks"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local finite_values = require "ltrain.trainer.steps.nonfinite.finite_values"
local gradient_names = require "ltrain.trainer.steps.nonfinite.gradient_names"
local gradients_of = require "ltrain.core.gradients_of"
local left_out = require "ltrain.optim.skipped_steps"
local loop = require "ltrain.trainer.loop"
local object = require "ltrain.trainer.object"
local slices = require "ltrain.trainer.ranks.slices"

local NonfiniteChecks = {}

local INF <const> = math.huge

--- Those of the run `state`.
function NonfiniteChecks.new(state)
  return object(NonfiniteChecks, {
    _state = state, _deferred = DeferredChecks.new(state),
    _loss = nil, -- of the running batch, where it is checked with its gradients
    _spoilt = nil, -- the first batch of the window whose gradients are not finite
  })
end

--- The next batch begins a window.
function NonfiniteChecks:end_window()
  self._loss, self._spoilt = nil, nil
  self._deferred:end_window()
end

-- Whether the device checks the gradients of a batch of a window by itself.
local function checks_in_window_later(self, optimizer)
  local deferred = self._deferred
  local gradients = deferred:is_possible() and gradients_of(optimizer.param_groups) or {}
  if #gradients == 0 then return false end
  local _ <close> = c.no_grad()
  local norm = c.grads_norm(gradients, INF)
  if not deferred:suits(optimizer, norm) then return false end
  deferred:suspect(norm)
  return true
end

--- A batch that does not end its window has made its gradients. Alone a process of the CPU stops
--- here; on several ranks, which must stop together, and on a device, which is not waited for, what
--- made a NaN is kept until the window ends.
function NonfiniteChecks:check_in_window(optimizer)
  local state = self._state
  if state.trainer.options.nonfinite ~= "stop" or state.scaler then return end
  if checks_in_window_later(self, optimizer) then return end
  if not (state.ranks.many or state.ranks.slices) then
    self:allows(optimizer)
  elseif not self._spoilt then
    local gradients = state.ranks.slices and slices.gradients(state)
      or gradients_of(optimizer.param_groups)
    if #gradients == 0 then -- they were reduced to shards
      gradients = gradients_of(state.strategy:param_groups(optimizer))
    end
    if not finite_values.all(gradients) then self._spoilt = state.rerun:kept_batch() end
  end
end

--- Raises when a step that the device was asked to check was not taken: before anything reads the
--- weights. All ranks come here.
function NonfiniteChecks:settle()
  self._state.step_count:settle()
  self._deferred:settle()
end

--- The same before values of the step that just ran are written, which the host has waited for.
function NonfiniteChecks:settle_shown() self._deferred:settle() end

--- The last step that the device was asked to check; nil: none that is not known by now.
function NonfiniteChecks:last_check() return self._deferred:last() end

--- Raises when a step up to this one was not taken.
function NonfiniteChecks:settle_to(check) self._deferred:settle_to(check) end

-- Where the first value that is not finite came from, for a message: the batch is run again. All
-- ranks come here.
local function cause_text(self) return self._state.rerun:cause(self._spoilt, true) end

local function refuse_loss(self, value)
  if finite_values.number(value) then return end
  errors.blame("training_step: the loss is %s (%s)%s: the weights are those before this step",
    value ~= value and "nan" or tostring(value), loop.place(self._state), cause_text(self))
end

local function skip_text(what, where)
  return ("warning: optimizer_step: %s are not finite (%s): the step is not taken (nonfinite = "
    .. "'skip')"):format(what, where)
end

-- The parameters whose gradients are not finite on some rank, as a text. All ranks come here.
local function names_text(state, optimizer)
  local own = gradient_names.own(state, optimizer)
  if state.ranks.many and not state.strategy:is_replicated "gradient" then
    own = gradient_names.of_ranks(own)
  end
  return gradient_names.listed(own)
end

-- Whether the device leaves out the step by itself where the norm is not finite.
local function skips_later(state, optimizer, norm)
  local count = state.step_count
  if not count:suits(optimizer) or not left_out.suits(optimizer, norm) then return false end
  local _ <close> = c.no_grad()
  optimizer:check_later(norm:isfinite():logical_not(), count:listener(optimizer,
    not count:has_warned() and skip_text("gradients", loop.place(state))))
  return true
end

--- Whether an optimizer may step with the gradients that are there. `norm`: what they were clipped
--- by (a tensor), nil: they are read. Raises when the fit is to stop (nonfinite = "stop").
function NonfiniteChecks:allows(optimizer, norm)
  local state, deferred = self._state, self._deferred
  if state.scaler then return state.scaling:allows(optimizer) end
  local mode = state.trainer.options.nonfinite
  if mode == "allow" then return true end
  norm = norm or state.optimizer_steps:grad_norm(optimizer, INF)
  if mode == "stop" and deferred:suits(optimizer, norm) then
    deferred:poll()
    deferred:check(optimizer, norm, self._loss)
    return true
  end
  if mode == "skip" and skips_later(state, optimizer, norm) then return true end
  if self._loss then refuse_loss(self, self._loss:item()) end
  if finite_values.number(norm:item()) then return true end
  if mode == "skip" then
    state.step_count:skip(not state.step_count:has_warned()
      and skip_text("the gradients of " .. names_text(state, optimizer), loop.place(state)))
    return false
  end
  local names = names_text(state, optimizer)
  errors.blame("optimizer_step: the gradients of %s are not finite (%s)%s: the weights are those "
    .. "before this step", names, loop.place(state), cause_text(self))
end

--- Raises when a loss is not finite. On the host the check costs nothing; on a device it is done
--- where a value is shown anyway: `now`, or with its gradients. Of several ranks one must not end
--- alone: their gradients say it.
function NonfiniteChecks:check_loss(loss, now)
  local state, trainer = self._state, self._state.trainer
  if trainer.options.nonfinite ~= "stop" or state.scaler then return end
  if state.ranks.many and #state.optimizers > 0 then return end
  if state.strategy.root_device ~= "cpu" and not trainer.options.detect_anomaly
    and not trainer:logs_this_step() then
    return
  end
  if not now and not trainer.options.detect_anomaly and self._deferred:is_possible() then
    self._loss = loss:detach() -- checked with its gradients
  else
    refuse_loss(self, loss:item())
  end
end

-- The parameters that are not finite, of those that this rank has, or of `weights`, all by name.
local function nonfinite_parameters(state, weights)
  if weights then
    return finite_values.nonfinite_parameters(state.module, weights, state.ranks.many)
  end
  local own = finite_values.own_nonfinite_parameters(state)
  if not state.ranks.many or state.strategy:is_replicated "parameter" then return own end
  return gradient_names.of_ranks(own)
end

--- Why the weights of a run must not be saved: they are not finite, and that was not asked for;
--- nil when they may. `weights`: those to be saved, by name; without it all ranks come here.
function NonfiniteChecks:why_not_saved(weights)
  local state = self._state
  if state.trainer.options.nonfinite == "allow" then return nil end
  local gone_on = self._deferred:why_not_saved()
  if gone_on then return gone_on end
  if not state.ranks.many then
    self:settle()
  elseif self._deferred:is_refused() then -- the others may not be here
    return "the gradients of the last step are not finite: nothing is saved"
  end
  local names = nonfinite_parameters(state, weights)
  if #names == 0 then return nil end
  return ("the weights of %s are not finite: nothing is saved (nonfinite = 'allow' saves them)")
    :format(gradient_names.listed(names))
end

return NonfiniteChecks
