--- stdlib/trainer/ranks/consensus.lua: the message that all ranks exchange with each step, so that
--- signals, `should_stop` and the end of the data take effect on all ranks after the same batch.
--
-- One header of a few numbers travels with each optimizer step (in manual optimization, and in
-- evaluation, with each batch). Whatever a rank alone has met - a signal, `should_stop`, a batch
-- that it does not have - is sent there, and acted on by all at the end of the same batch. A hook
-- that ends the epoch does so before the batch: where there is one, each batch has its own message.
local collectives = require "ltrain.dist.collectives"
local data_ranks = require "ltrain.dist.data_ranks"
local exchange = require "ltrain.trainer.ranks.exchange"
local interrupt = require "ltrain.core.interrupt"
local loaders = require "ltrain.trainer.data.loaders"
local rank_warnings = require "ltrain.trainer.ranks.rank_warnings"

local consensus = {}

-- Sums over the ranks.
local function add(state, numbers)
  local strategy = state.strategy
  return exchange("step", strategy.add, strategy, numbers)
end

--- Sends how much this rank's part of the step weighs, how many gradients it lacks, what has
--- happened on it, and the numbers of the list `own` (optional). Returns the sums of the first two,
--- and a list of those of the last; the rest is in state.ranks.agreed.
function consensus.step(state, weight, missing, own)
  local trainer, agreed = state.trainer, state.ranks.agreed
  local asked, signal = interrupt.pending()
  local sums = add(state, {
    data_ranks.counts() and weight or 0, missing, trainer.should_stop and 1 or 0,
    asked and 1 or 0, signal,
    trainer.is_global_zero and trainer:now() or 0, rank_warnings.count(state),
    state.ranks.asks_save and 1 or 0, table.unpack(own or {}),
  })
  state.ranks.asks_save = false
  agreed.stop = sums[3] > 0
  if agreed.stop then trainer.should_stop = true end
  agreed.interrupt = sums[4] > 0
  agreed.signal = agreed.interrupt and sums[5] // sums[4] or nil
  agreed.now = sums[6]
  agreed.save = agreed.save or sums[8] > 0
  if sums[7] > 0 then rank_warnings.report_together(state) end
  return sums[1], sums[2], { table.unpack(sums, 9) }
end

--- Whether the epoch ends before this batch. `leaves`: this rank's on_train_batch_start says so.
function consensus.leaves(state, leaves)
  if not state.ranks.many then return leaves end
  if not state.ranks.may_leave and not state.module.on_train_batch_start then return false end
  return add(state, { leaves and 1 or 0 })[1] > 0
end

--- Whether somebody has asked the fit to stop. Of several ranks none stops alone: they agree on it
--- with each optimizer step and each epoch.
function consensus.stops(state)
  if state.ranks.many then return state.ranks.agreed.stop or false end
  return state.trainer.should_stop
end

--- Called by all ranks: they stop together.
function consensus.to_stop(state)
  if not state.ranks.many then return end
  local stop = state.strategy:reduce_boolean(state.trainer.should_stop, false)
  state.trainer.should_stop, state.ranks.agreed.stop = stop, stop
end

--- Where the loop may end: whether all end here, and the number of the signal that asked for it.
function consensus.interrupted(state)
  if not state.ranks.many then return interrupt.pending() end
  local agreed = state.ranks.agreed
  return agreed.interrupt, agreed.signal
end

--- Seconds on a clock that all ranks read alike: rank 0's, as of the last step.
function consensus.now(state)
  return state.ranks.many and state.ranks.agreed.now or state.trainer:now()
end

-- The group of those ranks that say so, `count` of them; false on the others. `groups` has those
-- that were made before.
local function split(groups, count, is_in)
  if groups[count] == nil then
    groups[count] = collectives.split(is_in and 0 or -1) or false
  end
  return groups[count]
end

-- Ranks read data of their own, of unknown length: the pass continues while one has a
-- batch. `false` for a rank that has none any more.
local function next_of_any(state, pass)
  local batch, index, is_last = loaders.next(pass)
  local here = batch ~= nil
  local sums = add(state, { here and 1 or 0, here and not is_last and 1 or 0 })
  pass.step = (pass.step or pass.index - (here and 1 or 0)) + 1
  if sums[1] == 0 then return nil end
  pass.partial = sums[1] < state.trainer.world_size
  pass.groups = pass.groups or {} -- the first to end may be another rank in another pass
  state.ranks.active = pass.partial and split(pass.groups, sums[1], here)
  return batch or false, index or pass.step - 1, sums[2] == 0
end

--- The next batch of a pass of all ranks: `false` on a rank that has no sample in this step; then
--- pass.partial is true on all of them. Ranks that have are state.ranks.active then (nil: all).
function consensus.next(state, pass)
  state.ranks.active = false
  if not pass.source.shared then return next_of_any(state, pass) end
  local batch, index, is_last = loaders.next(pass)
  if batch == nil then return nil end
  local active = pass.source.active(index)
  pass.partial = active ~= nil and active < data_ranks.size()
  if pass.partial then
    state.ranks.active = split(state.ranks.groups, active, data_ranks.rank() < active)
  end
  return batch, index, is_last
end

--- From here on, until agree.leave, collectives without a group are those of the ranks that have a
--- sample in this step.
function consensus.enter(state)
  if state.ranks.active then collectives.use(state.ranks.active) end
end

function consensus.leave(state)
  if state.ranks.active then collectives.use(nil) end
end

--- At the start of a run.
function consensus.prepare(state)
  state.ranks.agreed, state.ranks.groups = {}, {}
  if state.ranks.many then consensus.step(state, 0, 0) end
end

return consensus
