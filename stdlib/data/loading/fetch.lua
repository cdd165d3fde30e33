-- stdlib/data/loading/fetch.lua: fetches samples by position and collates them to a batch, in the
-- process of the loader or in a worker.
--
-- What a sample draws is a function of (seed, epoch, position), what the collate function draws of
-- (seed, epoch, where the batch begins): the same whoever reads.

local c = require "ltrain.c"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"

local data = c.runtime.data

-- Places in the random numbers of an epoch; samples have 1..n.
local OF_BATCHES <const> = dataset_protocol.MOST
local OF_WORKERS <const> = 2 * dataset_protocol.MOST

local fetch = { OF_BATCHES = OF_BATCHES }

--- In what worker i draws before its first sample.
function fetch.place_of_worker(id) return OF_WORKERS + id end

-- Runs get(i); an error in it says which sample it was.
local function read_named(protect, read, position)
  local ok, sample = protect(read, position)
  if ok then return sample end
  if type(sample) == "string" and not sample:find "interrupted$" then
    sample = ("%s (in sample %d)"):format(sample, position)
  end
  error(sample, 0)
end

--- The batch that collate makes of a list of samples.
function fetch.collated(collate, list, positions)
  local batch = collate(list, positions)
  if batch == nil then
    errors.blame("DataLoader: collate returned nothing for samples %d to %d", positions[1],
      positions[#positions])
  end
  return batch
end

--- A function (seed, epoch, positions, first) that gives a batch: of the samples at `positions`,
--- which come in an epoch from number `first` on. `protect` is pcall, or what calls as it does;
--- is_over(), if given, is asked before each sample: when it says so there is no batch.
function fetch.batches(dataset, collate, protect, is_over)
  local read, scope = dataset_protocol.reader(dataset), data.sample_scope()
  local function sample_at(seed, epoch, at)
    local _ <close> = scope:enter(seed, epoch, at)
    return read_named(protect, read, at)
  end
  return function(seed, epoch, positions, first)
    local list = {}
    for k, at in ipairs(positions) do
      if is_over and is_over() then return nil end
      list[k] = sample_at(seed, epoch, at)
    end
    local _ <close> = scope:enter(seed, epoch, OF_BATCHES + first)
    return fetch.collated(collate, list, positions)
  end
end

return fetch
