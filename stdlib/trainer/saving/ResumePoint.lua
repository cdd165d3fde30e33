--- stdlib/trainer/saving/ResumePoint.lua: the position of a run in its loops, as a checkpoint
--- stores it.
--
-- A file resumes exactly from between two batches. A batch that fails has changed things by then:
-- buffers, gradients, metrics, counters. For a callback that saves on exceptions (its
-- `save_on_exception` is true) a snapshot is kept before each batch, with copies of what a batch
-- changes but the weights and the optimizer's state, which its last act changes. Of several ranks
-- each has gradients of its own, and a rank that fails can ask the others for nothing: there the
-- snapshot is of before the first batch of the window, when there are none.
local accumulation_state = require "ltrain.trainer.saving.accumulation_state"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local module_modes = require "ltrain.trainer.saving.module_modes"
local data_position = require "ltrain.trainer.data.data_position"
local partial_metrics = require "ltrain.trainer.logged.partial_metrics"
local tree = require "ltrain.core.tree"
local checkpoint_parts = require "ltrain.trainer.saving.checkpoint_parts"
local object = require "ltrain.trainer.object"

local ResumePoint = {}

--- That of the run `state`.
function ResumePoint.new(state)
  return object(ResumePoint, {
    _state = state,
    _step_before = false, -- global_step before the running batch; false: none runs
    _is_kept = false, -- whether a callback saves on exceptions
    _before = false, -- what was kept before the batch, for such a callback
    _random = false, -- where draws stood before the read that is under way
  })
end

--- A batch is about to be read; the run is saved as it was before.
function ResumePoint:begin_read() self._random = c.runtime.rng_state() end

function ResumePoint:end_read() self._random = false end

-- What a file holds that is made now. `agreed`: all ranks are here.
local function now(self, agreed)
  local state = self._state
  local found = { progress = {}, open = accumulation_state.collect(state, agreed),
    logged = partial_metrics.collect(state, agreed), modes = module_modes.collect(state),
    random = self._random or c.runtime.rng_state(),
    nominal_batch = state.window and state.window:nominal_batch() or nil }
  for key, value in pairs(state.progress) do found.progress[key] = value end
  found.progress.loader, found.cut = data_position.collect(state)
  return found
end

local function copy(leaf)
  return c.is_tensor(leaf) and leaf:detach():clone() or leaf
end

local function buffers_of(module)
  local buffers = {}
  for name, buffer in module:named_buffers() do buffers[name] = copy(buffer) end
  return buffers
end

--- Training begins: whether a callback of this fit saves on exceptions.
function ResumePoint:prepare()
  local state = self._state
  for _, callback in ipairs(state.trainer.callbacks) do
    self._is_kept = self._is_kept or callback.save_on_exception == true
  end
  local refusal = self._is_kept and checkpoint_parts.why_not_after_failure(state)
  if not refusal then return end
  self._is_kept = false
  state.trainer:warn("save_on_exception has no effect: " .. refusal)
end

--- Whether the state before each batch is kept.
function ResumePoint:is_kept() return self._is_kept end

--- Called before the next batch is read, and before an epoch begins.
function ResumePoint:keep()
  local state = self._state
  if not self._is_kept or state.ranks.many and not state.window:is_empty() then return end
  local before = now(self)
  before.open = tree.map(before.open, copy)
  before.buffers, before.global_step = buffers_of(state.module), state.trainer.global_step
  self._before = before
end

--- A batch begins to run.
function ResumePoint:begin_batch() self._step_before = self._state.trainer.global_step end

--- The device has left out a step that was counted.
function ResumePoint:take_back_step()
  if self._step_before then self._step_before = self._step_before - 1 end
end

--- Whether a batch runs that has stepped.
function ResumePoint:has_stepped()
  return self._step_before and self._state.trainer.global_step > self._step_before
end

--- A batch is done, with the step that belongs to it.
function ResumePoint:end_batch()
  self._step_before = false
  if not self._state.ranks.many or self._state.window:is_empty() then self:forget() end
end

--- A file that is saved from here on holds what comes now.
function ResumePoint:forget() self._before = false end

-- An optimizer has stepped (manual optimization), or was about to.
local function report_inexact(self)
  local state = self._state
  if state.optimizer_steps:is_updating()
    or state.trainer.global_step ~= self._before.global_step then
    state.trainer:say("save_checkpoint: an optimizer has changed weights in the batch that failed: "
      .. "a run that is resumed from the file does so again")
  end
end

-- A training_step that begins with a save: the file resumes with its batch.
local function is_at_start(self)
  local state = self._state
  return state.hook == "training_step" and state.trainer.global_step == self._step_before
    and not state.step_closure:is_again()
end

--- What a file made now is to hold: the state before the batch where one has failed. Raises in the
--- middle of a batch, where there is none that resumes exactly.
function ResumePoint:to_save(agreed)
  local state, is_in_batch = self._state, self._step_before
  if state.failed and self._before then
    report_inexact(self)
    return self._before
  elseif state.failed and is_in_batch then
    errors.blame("save_checkpoint: the fit ended in the middle of a batch: a file would not "
      .. "resume exactly; ModelCheckpoint{save_on_exception = true}, or a callback with that "
      .. "field, keeps the state before each batch")
  elseif is_in_batch and not is_at_start(self) then
    errors.blame("save_checkpoint: in the middle of a batch (%s) a file would not resume exactly: "
      .. "trainer:request_checkpoint(path) saves at the end of this batch, and on_train_batch_end "
      .. "may call save_checkpoint", state.hook or "training_step")
  end
  local found = now(self, agreed)
  if is_in_batch then found.progress.train_batches = found.progress.train_batches - 1 end
  return found
end

return ResumePoint
