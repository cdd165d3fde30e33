--- stdlib/trainer/shards.lua: the user's loaders as each rank's part of them.
--
-- A loader that knows `shard(rank, world, kind)` gives this rank's part of each batch from then on;
-- what the ranks do together rests on their cutting the same order, which is compared.
local c = require "ltrain.c"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local loaders = require "ltrain.trainer.loaders"

local shards = {}

local function has_method(value, name)
  return type(value) == "table" and type(value[name]) == "function"
end

-- An order as an error text has it: how many samples, and the first of them.
local function show_order(told)
  return ("%d samples beginning %s"):format(told.length, table.concat(told.first, ", "))
end

-- Raises, on every rank, when the ranks cut different orders.
local function compare(state, source)
  local loader = source.loader
  local own = has_method(loader, "fingerprint") and loader:fingerprint()
  if not own then return end
  c.dist.set_hook "order of the samples" -- what the other ranks are told of a rank that is here
  local told = dist.all_gather(own)
  c.dist.set_hook(state.hook or "")
  for rank = 2, #told do
    if told[rank].hash ~= told[1].hash then
      local sampler = loader.sampler or loader.batch_sampler
      errors.blame("%s: the ranks would read different orders: rank 0 has %s; rank %d has %s: %s "
        .. "must be the same on every rank: draw from the epoch that it is given, or from a seed",
        source.where, show_order(told[1]), rank - 1, show_order(told[rank]),
        sampler and ("the sampler (%s)"):format(errors.show(sampler)) or "the data set")
    end
  end
end

-- Whether each rank's data is its own already: the user has seen to it.
local function comes_sharded(loader)
  return has_method(loader, "comes_sharded") and loader:comes_sharded()
end

-- Has a loader cut into the ranks' parts; false when it cannot be.
local function cut(state, kind, loader)
  local trainer = state.trainer
  if not has_method(loader, "shard")
    or not loader:shard(trainer.global_rank, trainer.world_size, kind) then
    return false
  end
  table.insert(state.sharded, loader)
  return true
end

local function tell_uncut(state, loader)
  state.trainer:warn(("%s: every rank reads all of %s: give a DataLoader over a data set of known "
    .. "length, or one with shard(rank, world), to have it shared"):format(state.fn,
    errors.show(loader)))
end

-- The source of a loader in training or evaluation: this rank's part.
local function share(state, kind, source)
  if not cut(state, kind, source.loader) then
    tell_uncut(state, source.loader)
    return source
  end
  local part = loaders.source(source.loader, source.where) -- its length is another now
  part.length_alone = source.length
  if not comes_sharded(source.loader) then
    part.opened = function() compare(state, part) end
  end
  return part
end

-- The source of a loader in prediction. Batches are dealt whole, so that what is predicted does not
-- depend on the number of ranks; source.dealt says how:
--   "rounds"  the loader gives batch k to rank k % world, a round at a time
--   "alone"   each rank has batches of its own, taken to come in turns
--   "read"    every rank reads all batches and uses each world-th
local function deal(state, kind, source)
  local loader = source.loader
  if not cut(state, kind, loader) then
    source.dealt = "read"
  elseif comes_sharded(loader) or loader:length() == nil then
    source = loaders.source(loader, source.where)
    source.dealt = "alone"
  else
    source.dealt, source.opened = "rounds", function() compare(state, source) end
  end
  return source
end

--- The sources of a kind ("train", "val", "test", "predict") from what the user gave, each rank's
-- part of them.
function shards.sources(state, kind, value, where)
  local list = kind == "train" and { loaders.source(value, where) }
    or loaders.sources(value, where)
  if not state.many_ranks then return list end
  for i, source in ipairs(list) do
    if not state.trainer.options.use_distributed_sampler then
      source.dealt = kind == "predict" and comes_sharded(source.loader) and "alone" or nil
    elseif kind == "predict" then
      list[i] = deal(state, kind, source)
    else
      list[i] = share(state, kind, source)
    end
  end
  return list
end

--- The limits of a source that is dealt in rounds count batches of all ranks: from here on rounds.
function shards.count_rounds(state, source)
  if source.dealt ~= "rounds" then return end
  local world = state.trainer.world_size
  source.whole, source.length = source.count, source.loader:length()
  source.count = (source.count + world - 1) // world
end

--- Which batch of one process's table the `index`-th (from 0) of this rank's pass is; nil when it
-- is another rank's.
function shards.number_of(state, source, index)
  local rank, world = state.trainer.global_rank, state.trainer.world_size
  if not source.dealt then return index end
  if source.dealt == "read" then return index % world == rank and index or nil end
  local number = index * world + rank
  if not source.whole or number < source.whole then return number end
end

--- Makes the loaders whole again.
function shards.unshard(state)
  for _, loader in ipairs(state.sharded) do loader:shard() end
end

return shards
