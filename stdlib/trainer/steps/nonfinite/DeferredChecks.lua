--- stdlib/trainer/steps/nonfinite/DeferredChecks.lua: whether a step's gradients are finite, on
--- an asynchronous device: the device knows it at once, the host a few steps later.
--
-- The device leaves out a step whose gradients are not finite, and all that follow. Of each step a
-- flag is on its way to the host, which looks at what has arrived when the next step comes and
-- waits only when it is AHEAD steps ahead, or when something looks at the weights (a save, a
-- validation, an epoch's end). Only where that is enough: in a fit that ends at the first such step
-- (nonfinite = "stop"), with optimizers of ours, and nothing that must save the moment before the
-- batch. In a window of several batches the step at its end is left out; which batch it was is
-- said, too.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local finite = require "ltrain.trainer.steps.nonfinite.finite_values"
local left_out = require "ltrain.optim.left_out"
local loop = require "ltrain.trainer.loop"
local rerun = require "ltrain.trainer.steps.nonfinite.Rerun"

local deferred = {}

-- Each step that the host is ahead keeps its batch, which may have to run again.
local AHEAD <const> = 4

--- Whether steps of this fit may be checked so.
function deferred.is_possible(state)
  -- A field costs next to nothing; what a tensor is on is made a text.
  if state.strategy.root_device == "cpu" then return false end
  return (#state.optimizers == 1 or not state.automatic) and not state.loop.keeps_moments
    and not state.ranks.slices
    and (not state.ranks.many or state.strategy:is_replicated "gradient")
end

--- Whether the step of this optimizer may be; `norm`: of its gradients, 0-d.
function deferred.suits(state, optimizer, norm)
  return deferred.is_possible(state) and left_out.suits(optimizer, norm)
end

-- The flags of batches that are suspected no more.
local function clear(check, suspects)
  for _, suspect in ipairs(suspects or {}) do table.insert(check.spare, suspect.flag) end
end

-- What the first check of the queue has found; nil while that is on its way. Ranks, which must end
-- at the same step, do not look before the last moment.
local function first_found(state, queue, wait)
  if wait or #queue > AHEAD then return queue[1].flag:read() end
  if state.ranks.many then return nil end
  return queue[1].flag:poll()
end

-- Takes checks off the queue that have arrived and found nothing; true when one has found
-- something, which is the first then. `wait`: until none is left.
local function look(state, wait)
  local check = state.loop.check
  local queue = check and check.queue
  if not queue or #queue == 0 then return false end
  if wait then queue[#queue].flag:read() end -- the others have arrived by then
  while #queue > 0 do
    local found = first_found(state, queue, wait)
    if found == nil then return false end
    if found then return true end
    local entry = table.remove(queue, 1)
    table.insert(check.spare, entry.flag)
    clear(check, entry.suspects)
  end
  return false
end

--- Whether a step was left out; waits for the last one.
function deferred.is_refused(state) return look(state, true) end

-- "training_step: the loss is nan", where that was to be shown, else whose gradients.
local function what_text(entry, own, names_of)
  local loss = entry.loss and entry.loss:item()
  if loss and not finite.number(loss) then
    return ("training_step: the loss is %s"):format(loss ~= loss and "nan" or tostring(loss))
  end
  return ("optimizer_step: the gradients of %s are not finite"):format(names_of(own))
end

-- The first batch of a window whose gradients were not finite; nil: none but the last.
local function first_spoilt(suspects)
  for _, suspect in ipairs(suspects or {}) do
    if suspect.flag:read() then return suspect.kept end
  end
end

-- Ends the fit at the step that was left out first: from there on none was taken.
local function refuse(state, own_names, names_of)
  local queue = state.loop.check.queue
  local entry = queue[1]
  state.loop.check = { queue = {}, refused = entry.place }
  state.trainer.global_step = state.trainer.global_step - #queue -- they were counted as taken
  local own = {}
  local spoilt = first_spoilt(entry.suspects)
  state.loop.suspected.spoilt = spoilt
  local cause = rerun.cause(state, not spoilt and entry.kept or nil, function(optimizer)
    if #own == 0 then own = own_names(optimizer) end
  end)
  errors.blame("%s (%s)%s: the weights are those before this step",
    what_text(entry, own, names_of), entry.place, cause)
end

--- Raises if a step was left out; waits for all of them. `own_names(optimizer)` is called while
--- the gradients of this rank's batch, which runs again, are there; `names_of(own)` makes a text of
--- what it returned, on all ranks.
function deferred.settle(state, own_names, names_of)
  if look(state, true) then refuse(state, own_names, names_of) end
end

--- The same of those that are known by now.
function deferred.poll(state, own_names, names_of)
  if look(state, false) then refuse(state, own_names, names_of) end
end

--- Why nothing is saved after a step that was left out; nil without one. The host had gone on.
function deferred.why_not_saved(state)
  local place = state.loop.check and state.loop.check.refused
  return place and ("the gradients of a step were not finite (%s), and the fit has gone on from "
    .. "there without weights that change: nothing is saved; ModelCheckpoint{save_on_exception = "
    .. "true} keeps the moment before each batch"):format(place)
end

local function checks(state)
  state.loop.check = state.loop.check or { queue = {}, spare = {} }
  return state.loop.check
end

local function new_flag(check, found)
  local flag = table.remove(check.spare) or c.runtime.flag()
  flag:set(found)
  return flag
end

--- A batch that does not end its window has gradients whose norm is `norm`: it is kept until the
--- host has heard that they are finite.
function deferred.suspect(state, norm)
  local check, window, left = checks(state), state.loop.suspected, {}
  for i, suspect in ipairs(window.suspects or {}) do
    local found = suspect.flag:poll()
    if found == nil and i == 1 and #window.suspects > AHEAD then found = suspect.flag:read() end
    if found == false then clear(check, { suspect }) else left[#left + 1] = suspect end
  end
  left[#left + 1] = { flag = new_flag(check, norm:isfinite():logical_not()),
                      kept = rerun.kept_batch(state) }
  window.suspects = left
end

--- Gives the step that is about to be taken what refuses it, and keeps its batch until that is
--- known. `loss`: that of a step in which it is shown, which must be finite, too; else nil.
function deferred.check(state, optimizer, norm, loss)
  local check, window = checks(state), state.loop.suspected
  local is_finite = c.isfinite(norm)
  if loss then is_finite = is_finite:logical_and(c.isfinite(loss):reshape(norm.shape)) end
  local found = is_finite:logical_not()
  if check.found then found = check.found:logical_or(found) end
  if state.automatic or not window.kept then window.kept = rerun.kept_batch(state) end
  optimizer:check_by(found)
  check.found = found
  table.insert(check.queue,
    { flag = new_flag(check, found), loss = loss, place = loop.place(state), kept = window.kept,
      suspects = window.suspects })
end

return deferred
