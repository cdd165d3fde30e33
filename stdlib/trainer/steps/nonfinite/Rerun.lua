--- stdlib/trainer/steps/nonfinite/Rerun.lua: runs a batch again to find which operation made the
--- first value that is not finite.
--
-- The batch runs with the random numbers that it had, and no optimizer steps in it: in manual
-- optimization they have as long as the others the weights of the end. Buffers (the
-- averages of batch norm) and logged values are afterwards as they were; a fit ends after this.
local batches = require "ltrain.trainer.data.batches"
local c = require "ltrain.c"
local call = require "ltrain.trainer.call"
local dist = require "ltrain.dist"
local exchange = require "ltrain.trainer.ranks.exchange"
local finite = require "ltrain.trainer.steps.nonfinite.finite_values"
local loop = require "ltrain.trainer.loop"
local results = require "ltrain.trainer.logged.results"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local rerun = {}

-- What a batch needs to be run again.
local NEEDED <const> = { "batch", "batch_idx", "slice_batches", "random_before", "outside" }

--- The running batch, as `cause` can run it again later.
function rerun.kept_batch(state)
  local kept = { count = state.progress.train_batches - 1 }
  for _, key in ipairs(NEEDED) do kept[key] = state.loop[key] end
  state.loop.random_before = {}
  return kept
end

--- Keeps the running batch, whose gradients are not finite, until its window ends: it is the one
--- that `cause` runs again.
function rerun.keep_batch(state)
  state.loop.suspected.spoilt = rerun.kept_batch(state)
end

-- Makes `kept` the running batch; returns what makes the other one it again.
local function swap(state, kept)
  local before, current = {}, state.loop
  for _, key in ipairs(NEEDED) do before[key], current[key] = current[key], kept[key] end
  return function()
    for _, key in ipairs(NEEDED) do current[key] = before[key] end
  end
end

-- The first place in a batch that is not finite: "batch[1]"; nil without one.
local function place_in(value, path)
  if c.is_tensor(value) then return not finite.of(value) and path or nil end
  if type(value) ~= "table" or getmetatable(value) ~= nil then return nil end
  for key, held in tree.pairs(value) do
    local below = type(key) == "number" and ("%s[%d]"):format(path, key)
      or ("%s.%s"):format(path, key)
    local found = place_in(held, below)
    if found then return found end
  end
end

local function weights_text(module)
  local name = finite.nonfinite_parameters(module)[1]
  return name and ("the weights are not finite already, %s first"):format(name)
end

-- Copies of the module's buffers, and the function that puts them back.
local function keep_buffers(module)
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
local function run_step(state)
  local outputs = call.step(state, "training_step", state.loop.batch, state.loop.batch_idx)
  local loss = outputs
  if type(outputs) == "table" then loss = outputs.loss end
  if not c.is_tensor(loss) then return end
  rerun.note_loss(state, loss)
  if state.automatic and loss.requires_grad then call.method(state, "backward", loss) end
end

-- Tensors draw as they did, and so does math.random.
local function draw_again(state)
  c.runtime.rng_set(state.loop.random_before)
  local random = c.runtime.rng_state()
  random.script_drawn = 0
  c.runtime.rng_restore(random)
end

local function run_parts(state, count)
  if not state.ranks.slices then
    loop.begin_batch(state, "train", count)
    draw_again(state)
    return run_step(state)
  end
  for i, part in ipairs(state.loop.slice_batches) do
    if part then
      loop.begin_part(state.ranks.slices.first + i - 1, "train", count)
      state.loop.batch = batches.transfer(state, part, 1)
      run_step(state)
    end
  end
end

-- The same with what it would change kept; returns what was noted, or nil and an error.
-- `look(optimizer)` is called while its gradients are there.
local function run_watched(state, count, look)
  local restore, shown = keep_buffers(state.module), state.loop.results
  local current = state.loop
  current.results, current.rerunning, current.loss_is_finite = results.new(true), true, true
  current.look = look
  state.module:zero_grad()
  local ok, message = pcall(function()
    local _ <close> = c.runtime.note_anomalies()
    local together = state.ranks.many and state.automatic
    if together then c.dist.begin_step() end
    if not state.loop.outside then run_parts(state, count) end
    if together then c.dist.end_step(true) end
    if look and state.automatic then look(state.optimizers[1]) end
  end)
  state.module:zero_grad()
  current.look = nil
  restore()
  state.loop.results, state.loop.rerunning = shown, false
  if not ok then return nil, message end
  return c.runtime.anomalies()
end

-- "exp at model.lua:13 made the first inf, div at model.lua:14 the first nan"; nil without either.
local function made_text(made, before)
  if made.inf and made.nan then
    return ("%s%s made the first inf, %s%s the first nan"):format(before, made.inf, before,
      made.nan)
  elseif made.inf or made.nan then
    return ("%s%s made the first %s"):format(before, made.inf or made.nan,
      made.inf and "inf" or "nan")
  end
end

local function cause_of_batch(state, count, look)
  local made, message = run_watched(state, count, look)
  if not made then return "the batch could not be run again: " .. tostring(message) end
  local backward = made_text(made.backward, "the derivative of ")
  if state.loop.loss_is_finite and backward then return backward end
  local held = state.loop.batch and place_in(state.loop.batch, "batch")
  return made_text(made.forward, "") or held and held .. " is not finite"
    or made_text(made.aside, "") or backward
end

-- What this rank knows: of the batch `kept`, of one of the window that it kept, or of the last one.
local function own_cause(state, kept, look)
  local weights = weights_text(state.module)
  if weights then return weights end
  local spoilt = not kept and state.loop.suspected and state.loop.suspected.spoilt
  if not (kept or spoilt) then
    return cause_of_batch(state, state.progress.train_batches - 1, look)
  end
  local restore = swap(state, kept or spoilt)
  local cause = cause_of_batch(state, (kept or spoilt).count, look)
  restore()
  return spoilt and cause and ("in batch %d: %s"):format(spoilt.batch_idx, cause) or cause
end

--- Notes whether a loss of the batch that runs again is finite.
function rerun.note_loss(state, loss)
  if not finite.of(loss) then state.loop.loss_is_finite = false end
end

--- ": sqrt at model.lua:14 made the first nan", for the end of a text. All ranks call it; each
--- looks at its own batch, and all say what the first one that knows has found. `kept`: the batch,
--- nil for the running one; `look(optimizer)` (optional) is called while its gradients of that run
--- are there.
function rerun.cause(state, kept, look)
  local cause = own_cause(state, kept, look)
  if state.ranks.many then
    for i, found in ipairs(exchange("nonfinite", dist.all_gather, cause or false)) do
      if found then return (": rank %d: %s"):format(i - 1, found) end
    end
  end
  return ": " .. (cause or "run again, this batch gives finite values: an earlier one of the "
    .. "window, or a hook, has made them")
end

return rerun
