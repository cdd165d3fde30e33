-- stdlib/data/loading/sample_order.lua: the order of the samples of an epoch, and how it is divided
-- into batches and over ranks.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"

local data = c.runtime.data

local sample_order = {}

-- The first entries, to distinguish orders.
local FIRST <const> = 1000

-- The place in the random numbers of an epoch from which its order is drawn; samples have 1..n.
local PLACE_OF_ORDER <const> = 0

-- Draws of a sampler are keyed by seed and epoch, so that every rank, and a resumed run, gets the
-- same order. One that is sharded has its own seed.
local function keyed(loader, sampler, epoch)
  if type(sampler) == "table" and sampler.sharded then return nil end
  return data.sample_scope():enter(loader:order_seed(), epoch, PLACE_OF_ORDER)
end

-- What a sampler gives for an epoch: by its method `name`, as a function, or as the list it is.
local function ask(sampler, name, epoch)
  if class.has_method(sampler, "set_epoch") then sampler:set_epoch(epoch) end
  if class.has_method(sampler, name) then return sampler[name](sampler, epoch) end
  if type(sampler) == "function" then return sampler(epoch) end
  return sampler
end

local function order_of_sampler(loader, epoch, n)
  local _ <close> = keyed(loader, loader.sampler, epoch)
  local list = ask(loader.sampler, "indices", epoch)
  if type(list) ~= "table" then
    errors.blame("DataLoader: the sampler must give a list of positions: got %s",
      errors.show(list))
  end
  if #list < 0 or #list > dataset_protocol.MOST then
    errors.blame("DataLoader: the sampler: a count of samples is in 0..%d: got %d",
      dataset_protocol.MOST, #list)
  end
  return data.order_of(list, n)
end

-- The batches of a batch sampler as a list; it may give an iterator.
local function batches_of(loader, epoch)
  local _ <close> = keyed(loader, loader.batch_sampler, epoch)
  local batches = ask(loader.batch_sampler, "batches", epoch)
  if type(batches) == "function" then
    local list = {}
    for batch in batches do list[#list + 1] = batch end
    return list
  elseif type(batches) ~= "table" then
    errors.blame("DataLoader: the batch sampler must give lists of positions: got %s",
      errors.show(batches))
  end
  return batches
end

-- All samples of the batches in one order, and the last entry of each.
local function order_of_batches(loader, epoch, n)
  local flat, lasts = {}, {}
  for k, batch in ipairs(batches_of(loader, epoch)) do
    if type(batch) ~= "table" or #batch == 0 then
      errors.blame("DataLoader: batch %d of the batch sampler must be a list of positions: got %s",
        k, type(batch) == "table" and "none" or errors.show(batch))
    end
    table.move(batch, 1, #batch, #flat + 1, flat)
    lasts[k] = #flat
  end
  return data.order_of(flat, n), data.order_of(lasts, #flat)
end

--- The order of an epoch; with a batch sampler also the order of its batches' last entries.
function sample_order.order(loader, epoch)
  local n = dataset_protocol.count(loader.dataset, "DataLoader")
  if loader.shuffle then return data.order(n, loader:order_seed(), epoch) end
  if loader.batch_sampler then return order_of_batches(loader, epoch, n) end
  if loader.sampler then return order_of_sampler(loader, epoch, n) end
  return data.order(n)
end

--- Whether what the loader reads is this rank's alone already.
function sample_order.comes_sharded(loader)
  local sampler = loader.sampler or loader.batch_sampler
  return loader._iterable or type(sampler) == "table" and sampler.sharded == true
end

--- The samples of a step that rank `rank` of `world` has, of `global`.
function sample_order.part(global, rank, world)
  return global // world + (rank < global % world and 1 or 0)
end

--- Whether the global batches of a loader on `world` ranks can be those of `ranks` ranks.
function sample_order.can_keep_batches(loader, world, ranks)
  if not ranks or loader.batch_sampler then return false end
  if not sample_order.comes_sharded(loader) or loader.global_batch_size then return true end
  local shards = not loader._iterable or class.has_method(loader.dataset, "shard")
  return shards and loader.batch_size * ranks % world == 0
end

--- How a stream is cut (see lt_batching): by `lasts`, or into batches of a size.
function sample_order.batching(loader, lasts)
  local shard, global = loader._shard, loader.global_batch_size
  local rank, world = shard and shard.rank or 0, shard and shard.world or 1
  local kept = shard and shard.batches_of
  if kept and not global then global = loader.batch_size * kept end
  local cut = { drop_last = loader.drop_last, prefetch = loader.prefetch or 2, lasts = lasts,
    dealt = lasts ~= nil, pin = loader.pin_memory }
  if sample_order.comes_sharded(loader) or shard and shard.kind == "own" then
    cut.batch_size = global and sample_order.part(global, rank, world) or loader.batch_size
    return cut
  end
  cut.rank, cut.world = rank, world
  if lasts or shard and shard.kind == "predict" then
    cut.dealt, cut.batch_size = true, global or loader.batch_size
  else
    cut.batch_size = global or loader.batch_size * world
    cut.evaluation = shard ~= nil and shard.kind ~= "train"
    cut.wrap = loader.tail == "wrap"
  end
  return cut
end

-- The options that say how all ranks' samples are cut.
local function show_cut(loader)
  local parts = {}
  for _, name in ipairs { "global_batch_size", "batch_size", "drop_last", "tail" } do
    local value = loader[name]
    local usual = not value or value == "split"
      or name == "batch_size" and (loader.global_batch_size or loader.batch_sampler)
    if not usual then parts[#parts + 1] = ("%s = %s"):format(name, errors.show(value)) end
  end
  return table.concat(parts, ", ")
end

--- What decides whether two ranks have the same order, and cut it alike: a hash, the length, the
--- first entries; the options that cut.
function sample_order.fingerprint(loader, order, lasts)
  local hash = order:hash(FIRST)
  if lasts then hash = hash ~ lasts:hash(FIRST) * 3 end
  local first = {}
  for k = 1, math.min(3, #order) do first[k] = order:at(k) end
  return { hash = hash, length = #order, first = first, cut = show_cut(loader) }
end

return sample_order
