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

-- Tries to have a source shared; whether the ranks read parts of one order.
local function share(state, kind, source)
  local trainer, loader = state.trainer, source.loader
  if not trainer.options.use_distributed_sampler then return false end
  if not has_method(loader, "shard")
    or not loader:shard(trainer.global_rank, trainer.world_size, kind) then
    trainer:warn(("%s: every rank reads all of %s: give a DataLoader over a data set of known "
      .. "length, or one with shard(rank, world), to have it shared"):format(state.fn,
      errors.show(loader)))
    return false
  end
  table.insert(state.sharded, loader)
  return not (has_method(loader, "comes_sharded") and loader:comes_sharded())
end

--- The sources of a kind ("train", "val", "test", "predict") from what the user gave, each rank's
-- part of them.
function shards.sources(state, kind, value, where)
  local list = kind == "train" and { loaders.source(value, where) }
    or loaders.sources(value, where)
  -- Predictions stay whole: every rank makes all of them.
  if not state.many_ranks or kind == "predict" then return list end
  for i, source in ipairs(list) do
    local shared = share(state, kind, source)
    list[i] = loaders.source(source.loader, source.where) -- its length is another now
    list[i].opened = shared and function() compare(state, list[i]) end or nil
  end
  return list
end

--- Makes the loaders whole again.
function shards.unshard(state)
  for _, loader in ipairs(state.sharded) do loader:shard() end
end

return shards
