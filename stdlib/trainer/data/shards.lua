--- stdlib/trainer/data/shards.lua: shards the script's loaders over the ranks.
--
-- A loader that knows `shard(rank, world, kind)` gives this rank's part of each batch from then on;
-- what the ranks do together rests on their cutting the same order, which is compared.
local DataLoader = require "ltrain.data.DataLoader"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local data_ranks = require "ltrain.dist.data_ranks"
local dist = require "ltrain.dist"
local elastic = require "ltrain.trainer.ranks.elastic"
local errors = require "ltrain.core.errors"
local exchange = require "ltrain.trainer.ranks.exchange"
local loaders = require "ltrain.trainer.data.loaders"
local loop = require "ltrain.trainer.loop"
local slices = require "ltrain.trainer.ranks.slices"

local shards = {}

-- An order as an error text has it: how many samples, and the first of them.
local function show_order(order)
  return ("%d samples beginning %s"):format(order.length, table.concat(order.first, ", "))
end

-- What decides the order of a loader, as an error text has it.
local function show_maker(loader)
  local sampler = loader.sampler or loader.batch_sampler
  if not sampler then return "the data set" end
  local line = type(sampler) == "function" and c.runtime.function_line(sampler)
  return ("the sampler (%s%s)"):format(errors.show(sampler), line and " at " .. line or "")
end

local function show_cuts(ranks)
  local cuts = {}
  for i, of_rank in ipairs(ranks) do cuts[i] = of_rank.cut or "another loader" end
  return (errors.show_by_rank(cuts))
end

-- Raises, on every rank, when the ranks cut different orders, or one order differently.
local function compare(state, source)
  local loader = source.loader
  local own = class.has_method(loader, "fingerprint") and loader:fingerprint()
  if not own then return end
  local ranks = exchange("order of the samples", dist.all_gather, own)
  for rank = 2, #ranks do
    if ranks[rank].hash ~= ranks[1].hash then
      errors.blame("%s: the ranks would read different orders: rank 0 has %s; rank %d has %s: %s "
        .. "must be the same on every rank: draw from the epoch that it is given, or from a seed",
        source.where, show_order(ranks[1]), rank - 1, show_order(ranks[rank]), show_maker(loader))
    elseif ranks[rank].cut ~= ranks[1].cut then
      errors.blame("%s: the ranks would make different batches: %s: give all the "
        .. "same", source.where,
        show_cuts(ranks))
    end
  end
end

-- Whether each rank's data is its own: the user has seen to it.
local function comes_sharded(loader)
  return class.has_method(loader, "comes_sharded") and loader:comes_sharded()
end

-- Has a loader cut into the ranks' parts; false when it cannot be. "own": it is left as it is, but
-- for the size of its batches.
local function cut(state, kind, loader)
  if not class.has_method(loader, "shard")
    or not loader:shard(data_ranks.rank(), data_ranks.size(), kind,
      elastic.batches_of(state, kind, loader)) then
    return false
  end
  table.insert(state.data.sharded, loader)
  return true
end

local function report_uncut(state, loader)
  state.trainer:warn(("%s: every rank reads all of %s: give a DataLoader over a data set of known "
    .. "length, or one with shard(rank, world), to have it sharded"):format(state.fn,
    errors.show(loader)))
end

-- The source of a loader in training or evaluation: this rank's part. `source.shared`: the ranks
-- make the same steps, since they have parts of one stream.
local function share(state, kind, source)
  if not cut(state, kind, source.loader) then
    if data_ranks.size() > 1 then report_uncut(state, source.loader) end
    return source
  end
  local part = loaders.source(source.loader, source.where) -- its length is another now
  part.length_alone = source.length
  if not comes_sharded(source.loader) then
    part.shared = true
    if state.ranks.many then part.opened = function() compare(state, part) end end
    part.part = data_ranks.rank()
  end
  return part
end

-- Of every `world` batches that are read, this rank's; `counts` notes how many there were in each
-- round.
local function in_turns(source, rank, world, counts)
  return function(pass)
    local next_batch, first = pass.next_batch, pass.counter
    local round, read, ended = -1, 0, false
    return function()
      local own, count = false, 0
      while count < world and not ended and read ~= source.whole do
        if pass.draws then loop.begin_read(pass.kind, first + read) end
        local batch = next_batch()
        ended = batch == nil
        if not ended then
          if count == rank then own = batch end
          count, read = count + 1, read + 1
        end
      end
      round = round + 1
      counts[round], counts[round - 2] = count, nil
      if count > 0 then return own end
    end
  end
end

-- From the number of a rank's batch to the number among those of all, when they come in turns.
local function numbering()
  local rank, world = data_ranks.rank(), data_ranks.size()
  return function(index) return index * world + rank end
end

local function be_alone(source)
  source.dealt, source.number = "alone", numbering()
end

-- The source of a loader in prediction. Batches are dealt whole, batch k to rank k % world, a round
-- at a time, so that what is predicted does not depend on the number of ranks: by the loader, or of
-- what every rank reads. Batches that are a rank's own are taken to come in turns.
local function deal(state, kind, source)
  local loader, rank, world = source.loader, data_ranks.rank(), data_ranks.size()
  local counts = {}
  if not cut(state, kind, loader) then
    source.turns = in_turns(source, rank, world, counts)
  elseif comes_sharded(loader) then
    local own = loaders.source(loader, source.where)
    be_alone(own)
    return own
  else
    source.opened = function() compare(state, source) end
  end
  source.dealt, source.shared, source.number = "rounds", true, numbering()
  source.active = function(index)
    local count = source.whole and source.whole - index * world or counts[index]
    return count < world and count or nil
  end
  return source
end

-- The source of the rank's slices (deterministic = "world").
local function in_slices(state, value, where)
  local source = loaders.source(slices.loader(state, value), where)
  source.shared = true
  if state.ranks.many then source.opened = function() compare(state, source) end end
  return source
end

-- Ranks that read what is their own make the same steps if they have as many batches. What a batch
-- weighs is counted in rank 0's size, whatever the sizes are.
local function compare_own(list)
  local own = {}
  for i, source in ipairs(list) do
    own[i] = { length = not source.at_most and source.length or nil, size = source.batch_size }
  end
  local ranks = dist.all_gather(own, { group = data_ranks.group() })
  for i, source in ipairs(list) do
    local even, sum = own[i].length ~= nil, 0
    for _, of_rank in ipairs(ranks) do
      local other = of_rank[i] or {}
      even = even and other.length == own[i].length
      sum = sum and other.size and sum + other.size
    end
    if not source.shared then
      source.shared, source.global_batch = even, sum
      source.batch_size = ranks[1][i] and ranks[1][i].size
      source.uneven = sum and source.batch_size and sum ~= source.batch_size * #ranks
    end
  end
end

local DATA <const> = {
  train = "training data", val = "validation data", test = "test data", predict = "data to predict",
}

--- Raises, on every rank, when some were given no loaders of a kind, or another number of them.
function shards.compare_given(state, kind, value, where)
  local n = kind ~= "train" and loaders.number(value) or value ~= nil and 1 or 0
  local own = n == 0 and "none" or n == 1 and "1 loader" or n .. " loaders"
  local text, kinds = errors.show_by_rank(exchange(DATA[kind], dist.all_gather, own))
  if kinds > 1 then
    errors.blame("%s: the ranks have other %s: %s: %s must give the same number of loaders on "
      .. "every rank", state.fn, DATA[kind], text, where)
  end
end

--- The sources of a kind ("train", "val", "test", "predict") from what the user gave, each rank's
-- part of them.
function shards.sources(state, kind, value, where)
  if kind == "train" and state.ranks.slices then return { in_slices(state, value, where) } end
  local list = kind == "train" and { loaders.source(value, where) }
    or loaders.sources(value, where)
  if not state.ranks.many and not elastic.batches_of(state, kind, value) then return list end
  for i, source in ipairs(list) do
    if not state.trainer.options.use_distributed_sampler then
      if type(source.loader) == "table" and source.loader.global_batch_size then
        cut(state, "own", source.loader)
        list[i] = loaders.source(source.loader, source.where)
      end
      if kind == "predict" and comes_sharded(source.loader) then be_alone(list[i]) end
    elseif kind == "predict" then
      list[i] = deal(state, kind, source)
    else
      list[i] = share(state, kind, source)
    end
  end
  compare_own(list)
  return list
end

--- The length and limit of a source that is dealt in rounds count batches of all ranks: from here
-- on rounds.
function shards.count_rounds(source)
  if source.dealt ~= "rounds" then return end
  local function rounds(count) return count and math.ceil(count / data_ranks.size()) end
  source.whole = source.count
  source.length, source.count = rounds(source.length), rounds(source.count)
end

--- Of a pass that ends before its tail no batch is another than in one process: the tail is not
--- shared with the batch before it.
function shards.cut_short(state, source, kind)
  local evaluates = kind == "val" or kind == "test"
  if evaluates and source.opened and class.is_a(source.loader, DataLoader)
    and source.count and source.count < source.length then
    cut(state, "train", source.loader)
  end
end

--- Which batch of one process's table the `index`-th (from 0) of this rank's pass is; nil when it
-- has none.
function shards.number_of(source, index)
  if not source.number then return index end
  local number = source.number(index)
  if not source.whole or number < source.whole then return number end
end

--- Makes the loaders whole again.
function shards.unshard(state)
  for _, loader in ipairs(state.data.sharded) do loader:shard() end
end

return shards
