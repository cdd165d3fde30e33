--- stdlib/trainer/steps/nonfinite/init.lua: steps whose gradients are not finite are not taken, and
--- weights that are not finite are not saved.
--
-- The strategy's grad_norm of an optimizer before each of its steps; where gradients were clipped
-- by their norm, that norm says it. It is finite on all ranks or on none: they have the same
-- answer.
local c = require "ltrain.c"
local deferred = require "ltrain.trainer.steps.nonfinite.DeferredChecks"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local exchange = require "ltrain.trainer.ranks.exchange"
local finite = require "ltrain.trainer.steps.nonfinite.finite_values"
local gradients_of = require "ltrain.core.gradients_of"
local late = require "ltrain.trainer.steps.StepCount"
local left_out = require "ltrain.optim.left_out"
local loop = require "ltrain.trainer.loop"
local rerun = require "ltrain.trainer.steps.nonfinite.Rerun"
local scaling = require "ltrain.trainer.steps.LossScaling"
local slices = require "ltrain.trainer.ranks.slices"

local nonfinite = {}

local INF <const> = math.huge
local MOST <const> = 3 -- names in a text

-- "a, b and 3 more"; "all" when only their norm overflows.
local function listed(names)
  if #names == 0 then return "all parameters together" end
  if #names <= MOST then return table.concat(names, ", ") end
  return ("%s and %d more"):format(table.concat(names, ", ", 1, MOST), #names - MOST)
end

-- The names of parameters whose gradients are not finite on this rank.
local function own_names(state, optimizer)
  local names = {}
  for _, group in ipairs(state.strategy:param_groups(optimizer)) do
    for i, parameter in ipairs(group.params) do
      local grad = parameter.grad
      if grad and not finite.of(grad) then
        names[#names + 1] = group.names and group.names[i] or tostring(#names + 1)
      end
    end
  end
  return names
end

-- Those of all ranks, in their order, each once.
local function names_of_all(own)
  local names, seen = {}, {}
  for _, of_rank in ipairs(exchange("nonfinite", dist.all_gather, own)) do
    for _, name in ipairs(of_rank) do
      if not seen[name] then names[#names + 1] = name end
      seen[name] = true
    end
  end
  return names
end

-- The same of all ranks, as a text. All ranks come here.
local function names_of(state, optimizer)
  local names = own_names(state, optimizer)
  if state.ranks.many and not state.strategy:is_replicated "gradient" then
    names = names_of_all(names)
  end
  return listed(names)
end

-- Whether the device looks at the gradients of a batch of a window by itself.
local function looks_later(state, optimizer)
  local gradients = deferred.is_possible(state) and gradients_of(optimizer.param_groups) or {}
  if #gradients == 0 then return false end
  local _ <close> = c.no_grad()
  local norm = c.grads_norm(gradients, INF)
  if not deferred.suits(state, optimizer, norm) then return false end
  deferred.suspect(state, norm)
  return true
end

--- A batch that does not end its window has made its gradients. Alone a process of the CPU stops
--- here; on several ranks, which must stop together, and on a device, which is not waited for, what
--- made a NaN is kept until the window ends.
function nonfinite.look_in_window(state, optimizer)
  if state.trainer.options.nonfinite ~= "stop" or state.scaler then return end
  if looks_later(state, optimizer) then return end
  if not (state.ranks.many or state.ranks.slices) then
    nonfinite.allows(state, optimizer)
  elseif not state.loop.suspected.spoilt then
    local gradients = state.ranks.slices and slices.gradients(state)
      or gradients_of(optimizer.param_groups)
    if not finite.all(gradients) then rerun.keep_batch(state) end
  end
end

--- The next batch begins a window.
function nonfinite.end_window(state)
  local window = state.loop.suspected
  window.spoilt, window.loss, window.kept, window.suspects = nil, nil, nil, nil
end

--- A batch of manual optimization begins.
function nonfinite.begin_manual(state)
  state.loop.suspected.kept, state.loop.suspected.loss = nil, nil
end

-- deferred.settle or deferred.poll.
local function ask(state, how)
  local function own(optimizer) return own_names(state, optimizer) end
  how(state, own, function(names) -- a batch that runs again shares no gradients
    return listed(state.ranks.many and names_of_all(names) or names)
  end)
end

--- Raises when a step that the device was asked to check was not taken: before anything looks at
--- the weights. All ranks come here.
function nonfinite.settle(state)
  late.settle(state)
  ask(state, deferred.settle)
end

--- The same before values of the step that just ran are written, which the host has waited for.
function nonfinite.settle_shown(state) ask(state, deferred.settle) end

local function refuse_loss(state, value)
  if finite.number(value) then return end
  errors.blame("training_step: the loss is %s (%s)%s: the weights are those before this step",
    value ~= value and "nan" or tostring(value), loop.place(state), rerun.cause(state))
end

local function skip_text(what, where)
  return ("warning: optimizer_step: %s are not finite (%s): the step is not taken (nonfinite = "
    .. "'skip')"):format(what, where)
end

-- Whether the device leaves out the step by itself where the norm is not finite.
local function checks_later(state, optimizer, norm)
  if not late.is_possible(state, optimizer) or not left_out.suits(optimizer, norm) then
    return false
  end
  local _ <close> = c.no_grad()
  optimizer:check_later(norm:isfinite():logical_not(), late.listener(state, optimizer,
    not state.loop.warned_nonfinite and skip_text("gradients", loop.place(state))))
  return true
end

--- Whether an optimizer may step with the gradients that are there. `norm`: what they were clipped
--- by (a tensor), nil: they are read. Raises when the fit is to stop (nonfinite = "stop").
function nonfinite.allows(state, optimizer, norm)
  if state.scaler then return scaling.allows(state, optimizer) end
  local mode = state.trainer.options.nonfinite
  if mode == "allow" then return true end
  norm = norm or state.loop.around:grad_norm(optimizer, INF)
  local loss = state.loop.suspected.loss
  if mode == "stop" and deferred.suits(state, optimizer, norm) then
    ask(state, deferred.poll)
    deferred.check(state, optimizer, norm, loss)
    return true
  end
  if mode == "skip" and checks_later(state, optimizer, norm) then return true end
  if loss then refuse_loss(state, loss:item()) end
  if finite.number(norm:item()) then return true end
  if mode == "skip" then
    late.note(state, not state.loop.warned_nonfinite
      and skip_text("the gradients of " .. names_of(state, optimizer), loop.place(state)))
    return false
  end
  local names = names_of(state, optimizer)
  errors.blame("optimizer_step: the gradients of %s are not finite (%s)%s: the weights are those "
    .. "before this step", names, loop.place(state), rerun.cause(state))
end

--- Raises when a loss is not finite. On the host looking costs nothing; on a device it is done
--- where a value is shown anyway: `now`, or with its gradients. Of several ranks one must not end
--- alone: their gradients say it.
function nonfinite.check_loss(state, loss, now)
  local trainer = state.trainer
  if trainer.options.nonfinite ~= "stop" or state.scaler then return end
  if state.ranks.many and #state.optimizers > 0 then return end
  if state.strategy.root_device ~= "cpu" and not trainer.options.detect_anomaly
    and not trainer:logs_this_step() then
    return
  end
  if not now and not trainer.options.detect_anomaly and deferred.is_possible(state) then
    state.loop.suspected.loss = loss:detach() -- looked at with its gradients
  else
    refuse_loss(state, loss:item())
  end
end

--- Why the weights of a run must not be saved: they are not finite, and that was not asked for;
--- nil when they may.
function nonfinite.why_not_saved(state)
  if state.trainer.options.nonfinite == "allow" then return nil end
  local gone_on = deferred.why_not_saved(state)
  if gone_on then return gone_on end
  if not state.ranks.many then
    nonfinite.settle(state)
  elseif deferred.is_refused(state) then -- the others may not be here
    return "the gradients of the last step are not finite: nothing is saved"
  end
  local names = finite.nonfinite_parameters(state.module)
  if #names == 0 then return nil end
  return ("the weights of %s are not finite: nothing is saved (nonfinite = 'allow' saves them)")
    :format(listed(names))
end

return nonfinite
