--- stdlib/trainer/saving/ResumePoint.lua: where a run stands, as a checkpoint keeps it.
--
-- A file resumes exactly from between two batches. A batch that fails has changed things by then:
-- buffers, gradients, metrics, counters. For a callback that saves on exceptions (its
-- `save_on_exception` is true) the moment before each batch is kept, with copies of what a batch
-- changes but the weights and the optimizer's state, which its last act changes. Of several ranks
-- each has gradients of its own, and a rank that fails can ask the others for nothing: there the
-- moment is that before the first batch of the window, when there are none.
local accumulation_state = require "ltrain.trainer.saving.accumulation_state"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local modes = require "ltrain.trainer.saving.modes"
local position = require "ltrain.trainer.data.position"
local running = require "ltrain.trainer.logged.running"
local tree = require "ltrain.core.tree"
local whole = require "ltrain.trainer.saving.checkpoint_parts"

local moment = {}

--- The moment that is now. `agreed`: all ranks are here.
function moment.now(state, agreed)
  local found = { progress = {}, open = accumulation_state.collect(state, agreed),
    logged = running.collect(state, agreed), modes = modes.collect(state),
    random = state.loop.random or c.runtime.rng_state(),
    nominal_batch = state.window and state.window:nominal_batch() }
  for key, value in pairs(state.progress) do found.progress[key] = value end
  found.progress.loader, found.cut = position.collect(state)
  return found
end

-- Before a batch.

local function copy(leaf)
  return c.is_tensor(leaf) and leaf:detach():clone() or leaf
end

local function buffers_of(module)
  local buffers = {}
  for name, buffer in module:named_buffers() do buffers[name] = copy(buffer) end
  return buffers
end

--- Whether a callback of this fit saves on exceptions.
function moment.prepare(state)
  state.loop.keeps_moments = false
  for _, callback in ipairs(state.trainer.callbacks) do
    state.loop.keeps_moments = state.loop.keeps_moments or callback.save_on_exception == true
  end
  local refusal = state.loop.keeps_moments and whole.why_not_after_failure(state)
  if not refusal then return end
  state.loop.keeps_moments = false
  state.trainer:warn("save_on_exception has no effect: " .. refusal)
end

--- Called before the next batch is read, and before an epoch begins.
function moment.keep(state)
  local current = state.loop
  if not current.keeps_moments or state.ranks.many and not state.window:is_empty() then return end
  local before = moment.now(state)
  before.open = tree.map(before.open, copy)
  before.buffers, before.global_step = buffers_of(state.module), state.trainer.global_step
  state.loop.before = before
end

--- Called when a batch is done, with the step that belongs to it.
function moment.pass(state)
  local current = state.loop
  current.in_batch = false
  if not state.ranks.many or state.window:is_empty() then current.before = false end
end

-- Which one is saved.

-- An optimizer has stepped (manual optimization), or was about to.
local function report_inexact(state, before)
  if state.loop.updating or state.trainer.global_step ~= before.global_step then
    state.trainer:say("save_checkpoint: an optimizer has changed weights in the batch that failed: "
      .. "a run that is resumed from the file does so again")
  end
end

-- A training_step that begins with a save: the file resumes with its batch.
local function is_at_start(state)
  return state.hook == "training_step" and state.trainer.global_step == state.loop.in_batch
    and not state.step_closure:is_again()
end

--- The moment that a file made now is to hold: that before the batch where one has failed. Raises
--- in the middle of a batch, where there is none that resumes exactly.
function moment.to_save(state, agreed)
  if state.failed and state.loop.before then
    report_inexact(state, state.loop.before)
    return state.loop.before
  elseif state.failed and state.loop.in_batch then
    errors.blame("save_checkpoint: the fit ended in the middle of a batch: a file would not resume "
      .. "exactly; ModelCheckpoint{save_on_exception = true}, or a callback with that field, has "
      .. "the state before each batch kept")
  elseif state.loop.in_batch and not is_at_start(state) then
    errors.blame("save_checkpoint: in the middle of a batch (%s) a file would not resume exactly: "
      .. "trainer:request_checkpoint(path) saves at the end of this batch, and on_train_batch_end "
      .. "may call save_checkpoint", state.hook or "training_step")
  end
  local now = moment.now(state, agreed)
  if state.loop.in_batch then now.progress.train_batches = now.progress.train_batches - 1 end
  return now
end

return moment
