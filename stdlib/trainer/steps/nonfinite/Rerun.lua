--- stdlib/trainer/steps/nonfinite/Rerun.lua: runs a batch again to find which operation made the
--- first value that is not finite.
--
-- The batch runs with the random numbers that it had. No optimizer steps in it: in manual
-- optimization, where several may, all of its forward passes have the weights of now. Buffers (the
-- averages of batch norm) and logged values are restored; a fit ends after this.
local batches = require "ltrain.trainer.data.batches"
local c = require "ltrain.c"
local hook_calls = require "ltrain.trainer.hook_calls"
local dist = require "ltrain.dist"
local exchange = require "ltrain.trainer.ranks.exchange"
local finite_values = require "ltrain.trainer.steps.nonfinite.finite_values"
local loop = require "ltrain.trainer.loop"
local module_step = require "ltrain.trainer.steps.module_step"
local object = require "ltrain.trainer.object"
local results = require "ltrain.trainer.logged.results"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local Rerun = {}

--- That of the run `state`.
function Rerun.new(state)
  return object(Rerun, {
    _state = state,
    _draws = {}, -- where draws stood before training_step
    _is_running = false,
    _look = nil, -- called with each optimizer while its gradients of the batch are there
    _loss_is_finite = true, -- of the batch that runs again
  })
end

--- Whether a batch runs again now.
function Rerun:is_running() return self._is_running end

--- training_step is about to run.
function Rerun:note_draws() c.runtime.rng_get(self._draws) end

-- What the running batch needs to be run again.
local function current_batch(self)
  local current = self._state.loop
  return { count = self._state.progress.train_batches - 1, draws = self._draws,
    batch = current.batch, batch_idx = current.batch_idx, outside = current.outside,
    slice_batches = current.slice_batches }
end

-- The same value with another handle of each tensor, noted in `handles`.
local function with_handles(value, handles, seen)
  if c.is_tensor(value) and not value.requires_grad then
    local handle = value:detach()
    handles[#handles + 1] = handle
    return handle
  elseif type(value) ~= "table" or getmetatable(value) ~= nil or seen[value] then
    return seen[value] or value
  end
  local copy = {}
  seen[value] = copy
  for key, field in next, value do copy[key] = with_handles(field, handles, seen) end
  return copy
end

--- The running batch, as `cause` can run it again later, until it is released as often as it was
--- retained. What lives for some batches is old for the collector, which then comes to it late: so
--- tensors have handles here that are closed.
function Rerun:kept_batch()
  local kept = current_batch(self)
  kept.handles, kept.uses = {}, 0
  kept.batch = with_handles(kept.batch, kept.handles, {})
  self._draws = {}
  return kept
end

--- Returns a kept batch (nil: none), which has one more use.
function Rerun.retain(kept)
  if kept then kept.uses = kept.uses + 1 end
  return kept
end

--- One use of a kept batch (nil: none) is over.
function Rerun.release(kept)
  if not kept then return end
  kept.uses = kept.uses - 1
  if kept.uses > 0 then return end
  for _, handle in ipairs(kept.handles) do
    local _ <close> = handle
  end
end

local function set_current_batch(self, kept)
  local current = self._state.loop
  loop.set_batch(self._state, kept.batch, kept.batch_idx)
  current.slice_batches, current.outside = kept.slice_batches, kept.outside
  self._draws = kept.draws
end

-- The first place in a batch that is not finite: "batch[1]"; nil without one.
local function nonfinite_path(value, path)
  if c.is_tensor(value) then return not finite_values.of(value) and path or nil end
  if type(value) ~= "table" or getmetatable(value) ~= nil then return nil end
  for key, field in tree.pairs(value) do
    local below = type(key) == "number" and ("%s[%d]"):format(path, key)
      or ("%s.%s"):format(path, key)
    local found = nonfinite_path(field, below)
    if found then return found end
  end
end

local function nonfinite_weights_text(state)
  local name = finite_values.own_nonfinite_parameters(state)[1]
  return name and ("the weights are not finite already, %s first"):format(name)
end

-- Copies of the module's buffers, and the function that puts them back.
local function save_buffers(module)
  local kept = {}
  for _, item in ipairs(walk.tensors(module)) do
    if item.buffer then kept[item.value] = item.value:clone() end
  end
  return function()
    local _ <close> = c.allow_update()
    for buffer, value in next, kept do buffer:copy_(value) end
  end
end

-- training_step, and backward in automatic optimization.
local function run_step(self)
  local state = self._state
  local outputs = module_step.run(state, "training_step", state.loop.batch, state.loop.batch_idx)
  local loss = outputs
  if type(outputs) == "table" then loss = outputs.loss end
  if not c.is_tensor(loss) then return end
  self:note_loss(loss)
  if state.automatic and loss.requires_grad then hook_calls.method(state, "backward", loss) end
end

-- Tensors draw as they did, and so does math.random.
local function restore_rng(self)
  c.runtime.rng_set(self._draws)
  local random = c.runtime.rng_state()
  random.script_drawn = 0
  c.runtime.rng_restore(random)
end

local function rerun_batch(self, count)
  local state = self._state
  if not state.ranks.slices then
    loop.begin_batch(state, "train", count)
    restore_rng(self)
    return run_step(self)
  end
  for i, part in ipairs(state.loop.slice_batches) do
    if part then
      loop.begin_part(state.ranks.slices.first + i - 1, "train", count)
      loop.set_batch(state, batches.transfer(state, part, 1))
      run_step(self)
    end
  end
end

-- The same with what it would change kept; returns what was noted, or nil and an error.
local function rerun_recording(self, count, look)
  local state = self._state
  local restore, shown = save_buffers(state.module), state.loop.results
  state.loop.results, self._is_running, self._loss_is_finite = results.new(true), true, true
  self._look = look
  state.module:zero_grad()
  local ok, message = pcall(function()
    local _ <close> = c.runtime.note_anomalies()
    local together = state.ranks.many and state.automatic
    if together then c.dist.begin_step() end
    if not state.loop.outside then rerun_batch(self, count) end
    if together then state.strategy:end_collectives() end
    if look and state.automatic then look(state.optimizers[1]) end
  end)
  state.module:zero_grad()
  restore()
  state.loop.results, self._is_running, self._look = shown, false, nil
  if not ok then return nil, message end
  return c.runtime.anomalies()
end

-- "exp at model.lua:13 made the first inf, div at model.lua:14 the first nan"; nil without either.
local function first_nonfinite_text(made, before)
  if made.inf and made.nan then
    return ("%s%s made the first inf, %s%s the first nan"):format(before, made.inf, before,
      made.nan)
  elseif made.inf or made.nan then
    return ("%s%s made the first %s"):format(before, made.inf or made.nan,
      made.inf and "inf" or "nan")
  end
end

local function cause_of_batch(self, count, look)
  local made, message = rerun_recording(self, count, look)
  if not made then return "the batch could not be run again: " .. tostring(message) end
  local backward = first_nonfinite_text(made.backward, "the derivative of ")
  if self._loss_is_finite and backward then return backward end
  local batch = self._state.loop.batch
  local path = batch and nonfinite_path(batch, "batch")
  return first_nonfinite_text(made.forward, "") or path and path .. " is not finite"
    or first_nonfinite_text(made.aside, "") or backward
end

-- What this rank knows.
local function cause_on_this_rank(self, kept, is_named, look)
  local weights = nonfinite_weights_text(self._state)
  if weights then return weights end
  local before = current_batch(self)
  if not kept then return cause_of_batch(self, before.count, look) end
  set_current_batch(self, kept)
  local cause = cause_of_batch(self, kept.count, look)
  set_current_batch(self, before)
  return is_named and cause and ("in batch %d: %s"):format(kept.batch_idx, cause) or cause
end

--- Notes whether a loss of the batch that runs again is finite.
function Rerun:note_loss(loss)
  if not finite_values.of(loss) then self._loss_is_finite = false end
end

--- A step of an optimizer in that batch: it changes nothing.
function Rerun:step(optimizer, closure)
  local result = closure and closure()
  if self._look then self._look(optimizer) end
  return result
end

--- ": sqrt at model.lua:14 made the first nan", for the end of a text. All ranks call it; each runs
--- its own batch again, and all report what the first one that knows has found. `kept`: the batch,
--- nil for the running one; `is_named`: the text says which one it is; `look(optimizer)` (optional)
--- is called while its gradients of that run are there.
function Rerun:cause(kept, is_named, look)
  local cause = cause_on_this_rank(self, kept, is_named, look)
  if self._state.ranks.many then
    for i, found in ipairs(exchange("nonfinite", dist.all_gather, cause or false)) do
      if found then return (": rank %d: %s"):format(i - 1, found) end
    end
  end
  return ": " .. (cause or "run again, this batch gives finite values: they come from an earlier "
    .. "batch of the window, or a hook")
end

return Rerun
