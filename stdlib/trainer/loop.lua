--- stdlib/trainer/loop.lua: what the fit, evaluation and predict loops share: the stage, the keys
--- of random numbers of each batch, pausing for a host program.
--
-- Loops are plain functions over a state table. `pause` is where a host that steps the loop, or a
-- debugger, takes control; `begin_batch` keys the random numbers; `end_batch` is the one place
-- where the collector runs.
local c = require "ltrain.c"
local data_ranks = require "ltrain.dist.data_ranks"

local loop = {}

-- Streams of random numbers, by kind of loop. What reading data draws is apart from what the step
-- draws, because a batch may be read one step ahead; hooks between batches have streams too, so
-- that what they draw does not depend on where a resumed run began.
local STREAM <const> = { train = 1, eval = 2, predict = 3 }
local READING <const> = 3
local PART <const> = 16 -- streams of a rank, or of a slice of the batch
local BETWEEN <const> = { batch = 7, epoch = 8 }

-- Fields of the Trainer that say what it is doing.
local DOING <const> = {
  train = "training", validation = "validating", test = "testing", predict = "predicting",
  sanity_check = "sanity_checking",
}

--- Says what the run does now: a key of DOING, or nil between such things.
function loop.set_stage(state, stage)
  local trainer = state.trainer
  state.loop.stage, trainer.state.stage = stage, stage
  for key, field in pairs(DOING) do trainer[field] = key == stage end
end

--- "epoch 0, batch 3, step 3", for texts.
function loop.place(state)
  return ("epoch %d, batch %d, step %d"):format(state.trainer.current_epoch, state.loop.batch_idx,
    state.trainer.global_step)
end

-- One table for all calls: a step makes no garbage for this.
local key <const> = { stream = 0, batch = 0 }

local function set_position(stream, batch)
  key.stream, key.batch = stream, batch
  c.runtime.rng_set(key)
end

--- Random numbers are those of code outside loops again.
function loop.leave()
  c.runtime.rng_set { stream = 0 }
end

--- The position of random numbers; nil outside loops.
function loop.draws()
  local at = c.runtime.rng_get()
  return at.stream ~= 0 and at or nil
end

--- Restores the position of random numbers that loop.draws returned.
function loop.set_draws(at)
  if at then c.runtime.rng_set(at) end
end

--- Called before every batch and hook: yields to the caller that steps this run, whose random
--- numbers are those of code outside loops.
function loop.pause(state, where)
  if not state.stepped then return end
  local at = loop.draws()
  if at then at.seed = nil end -- lt.seed has its effect
  loop.leave()
  coroutine.yield(where)
  loop.set_draws(at)
end

--- Sets the rng key of batch number `count` of this kind of loop. Ranks that have a part of their
--- own of the samples, or of the sequences in them, have one each, except where batches are whole
--- and numbered as in one process: predictions.
function loop.begin_batch(state, kind, count)
  loop.pause(state, "batch")
  loop.begin_part(kind == "predict" and 0 or data_ranks.replica(), kind, count)
end

--- The same of part `part` of the batch (from 0), whoever computes it.
function loop.begin_part(part, kind, count)
  set_position(STREAM[kind] + PART * part, count)
end

--- Sets the rng key of part `k` (from 1) of those that a rank computes besides its first; `at`:
--- where the first began, as loop.draws returned it.
function loop.begin_device_part(at, k)
  set_position(at.stream + PART * k * data_ranks.size(), at.batch)
end

local being_read <const> = { kind = "train", count = 0 }

--- Sets the rng key for reading batch number `count`, or this rank's part of it (from 0).
function loop.begin_read(kind, count, part)
  being_read.kind, being_read.count = kind, count
  loop.read_part(part or 0)
end

--- The same of another part of that batch.
function loop.read_part(part)
  set_position(STREAM[being_read.kind] + READING + PART * part, being_read.count)
end

--- The running batch, and its number in the epoch (from 0; nil: as before), for all that asks.
function loop.set_batch(state, batch, index)
  local current = state.loop
  current.batch, current.batch_count = batch, false
  current.batch_idx = index or current.batch_idx
end

--- Forgets the batch.
function loop.drop_batch(state)
  local current = state.loop
  current.batch, current.outputs, current.batch_count = false, false, false
end

--- Forgets the batch and lets the collector run.
function loop.end_batch(state)
  loop.drop_batch(state)
  c.runtime.collect_boundary()
end

--- Sets the rng key of hooks that follow a batch (or an epoch), before the next batch.
function loop.between(where, count)
  set_position(BETWEEN[where], count)
end

return loop
