--- stdlib/trainer/steps/nonfinite/DeferredChecks.lua: checks for finite gradients on asynchronous
--- devices: the device skips the step at once, the host reads the flag a few steps later.
--
-- The device leaves out a step whose gradients are not finite, and all that follow. Of each step a
-- flag is on its way to the host, which reads those that have arrived when the next step comes and
-- waits only when it is AHEAD steps ahead, or when something reads the weights (a save, a
-- validation, an epoch's end). Only where that is enough: in a fit that ends at the first such step
-- (nonfinite = "stop"), with optimizers of ours, and nothing that must save the state before the
-- batch. In a window of several batches the step at its end is left out; which batch it was is
-- reported, too.
local Rerun = require "ltrain.trainer.steps.nonfinite.Rerun"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local finite_values = require "ltrain.trainer.steps.nonfinite.finite_values"
local gradient_names = require "ltrain.trainer.steps.nonfinite.gradient_names"
local left_out = require "ltrain.optim.skipped_steps"
local loop = require "ltrain.trainer.loop"
local object = require "ltrain.trainer.object"

local DeferredChecks = {}

-- Each step that the host is ahead keeps its batch, which may have to run again.
local AHEAD <const> = 4

--- Those of the run `state`.
function DeferredChecks.new(state)
  return object(DeferredChecks, {
    _state = state,
    _queue = {}, -- steps that the host has not heard of: { flag, loss, place, kept, suspects }
    _spare = {}, -- flags to be used again
    _found = nil, -- whether a step was left out, a bool on the device
    _refused = nil, -- the place of the first that was
    _kept = nil, -- the running batch, for all steps of manual optimization in it
    _suspects = nil, -- batches of the window before it: { flag, kept }
  })
end

-- The running batch; nil: none.
local function set_kept(self, kept)
  Rerun.release(self._kept)
  self._kept = Rerun.retain(kept)
end

--- The next batch begins a window.
function DeferredChecks:end_window()
  set_kept(self, nil)
  self._suspects = nil
end

--- Whether steps of this fit may be checked so.
function DeferredChecks:is_possible()
  local state = self._state
  -- A field costs next to nothing; what a tensor is on is made a text.
  if state.strategy.root_device == "cpu" then return false end
  return (#state.optimizers == 1 or not state.automatic) and not state.resume_point:is_kept()
    and not state.ranks.slices
    and (not state.ranks.many or state.strategy:is_replicated "gradient")
end

--- Whether the step of this optimizer may be; `norm`: of its gradients, 0-d.
function DeferredChecks:suits(optimizer, norm)
  return self:is_possible() and left_out.suits(optimizer, norm)
end

-- Batches are suspected no more: their flags are used again, they are not kept.
local function recycle(self, suspects)
  for _, suspect in ipairs(suspects or {}) do
    table.insert(self._spare, suspect.flag)
    Rerun.release(suspect.kept)
  end
end

-- What the first check of the queue has found; nil while that is on its way. Ranks, which must end
-- at the same step, do not read it before the last moment.
local function read_first(self, wait)
  local first = self._queue[1]
  if wait or #self._queue > AHEAD then return first.flag:read() end
  if self._state.ranks.many then return nil end
  return first.flag:poll()
end

-- What lives for some batches has grown old, and is collected late: the loss is closed.
local function drop_first(self)
  local entry = table.remove(self._queue, 1)
  local _ <close> = entry.loss
  recycle(self, { entry })
  recycle(self, entry.suspects)
end

-- Takes checks off the queue that have arrived and found nothing; true when one has found
-- something, which is the first then. `wait`: until none is left.
local function process_queue(self, wait)
  local queue = self._queue
  if #queue == 0 then return false end
  if wait then queue[#queue].flag:read() end -- the others have arrived by then
  while #queue > 0 do
    local found = read_first(self, wait)
    if found == nil then return false end
    if found then return true end
    drop_first(self)
  end
  return false
end

--- Whether a step was left out; waits for the last one.
function DeferredChecks:is_refused() return process_queue(self, true) end

-- "training_step: the loss is nan", where that was to be shown, else whose gradients. All ranks
-- come here; a batch that runs again shares no gradients.
local function failure_text(self, entry, own)
  local loss = entry.loss and entry.loss:item()
  if loss and not finite_values.number(loss) then
    return ("training_step: the loss is %s"):format(loss ~= loss and "nan" or tostring(loss))
  end
  return ("optimizer_step: the gradients of %s are not finite"):format(
    gradient_names.listed(self._state.ranks.many and gradient_names.of_ranks(own) or own))
end

-- The first batch of a window whose gradients were not finite; nil: none but the last.
local function first_nonfinite_batch(suspects)
  for _, suspect in ipairs(suspects or {}) do
    if suspect.flag:read() then return suspect.kept end
  end
end

-- Ends the fit at the step that was left out first: from there on none was taken.
local function raise_nonfinite(self)
  local state, entry = self._state, self._queue[1]
  state.trainer.global_step = state.trainer.global_step - #self._queue -- they were counted as taken
  for _, later in ipairs(self._queue) do later.refused = true end
  self._queue, self._found, self._refused = {}, nil, entry.place
  local own, spoilt = {}, first_nonfinite_batch(entry.suspects)
  local cause = state.rerun:cause(spoilt or entry.kept, spoilt ~= nil, function(optimizer)
    if #own == 0 then own = gradient_names.own(state, optimizer) end
  end)
  errors.blame("%s (%s)%s: the weights are those before this step", failure_text(self, entry, own),
    entry.place, cause)
end

--- Raises if a step was left out; waits for all of them. All ranks come here.
function DeferredChecks:settle()
  if process_queue(self, true) then raise_nonfinite(self) end
end

--- The last check of the queue, or nil.
function DeferredChecks:last() return self._queue[#self._queue] end

--- Raises if a step up to one whose check this is was left out; waits for that.
function DeferredChecks:settle_to(check)
  local queue, waits = self._queue, false
  for _, entry in ipairs(queue) do waits = waits or entry == check end
  while waits do
    if queue[1].flag:read() then raise_nonfinite(self) end
    waits = queue[1] ~= check
    drop_first(self)
  end
end

--- The same of those that are known by now.
function DeferredChecks:poll()
  if process_queue(self, false) then raise_nonfinite(self) end
end

--- Why nothing is saved after a step that was left out; nil without one. The host had gone on.
function DeferredChecks:why_not_saved()
  return self._refused and ("the gradients of a step were not finite (%s), and the weights have "
    .. "not changed since: nothing is saved; ModelCheckpoint{save_on_exception = true} keeps the "
    .. "state before each batch"):format(self._refused)
end

local function new_flag(self, found)
  local flag = table.remove(self._spare) or c.runtime.readback()
  flag:set(found)
  return flag
end

--- A batch that does not end its window has gradients whose norm is `norm`: it is kept until the
--- host has heard that they are finite.
function DeferredChecks:suspect(norm)
  local suspects, left = self._suspects or {}, {}
  for i, suspect in ipairs(suspects) do
    local found = suspect.flag:poll()
    if found == nil and i == 1 and #suspects > AHEAD then found = suspect.flag:read() end
    if found == false then recycle(self, { suspect }) else left[#left + 1] = suspect end
  end
  left[#left + 1] = { flag = new_flag(self, norm:isfinite():logical_not()),
                      kept = Rerun.retain(self._state.rerun:kept_batch()) }
  self._suspects = left
end

--- Gives the step that is about to be taken what refuses it, and keeps its batch until that is
--- known. `loss`: that of a step in which it is shown, which must be finite, too; else nil.
function DeferredChecks:check(optimizer, norm, loss)
  local is_finite = c.isfinite(norm)
  if loss then is_finite = is_finite:logical_and(c.isfinite(loss):reshape(norm.shape)) end
  local found = is_finite:logical_not()
  found = (self._found or c.zeros_like(found)):logical_or(found)
  if self._state.automatic or not self._kept then
    set_kept(self, self._state.rerun:kept_batch())
  end
  optimizer:check_by(found)
  self._found = found
  table.insert(self._queue, { flag = new_flag(self, found), loss = loss,
    place = loop.place(self._state), kept = Rerun.retain(self._kept), suspects = self._suspects })
end

return DeferredChecks
