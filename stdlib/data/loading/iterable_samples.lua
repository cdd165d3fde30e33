-- stdlib/data/loading/iterable_samples.lua: the samples of an iterable data set, as one process
-- reads them.
--
-- Without workers that is the loader's process, and all of them. Workers each iterate over a copy
-- of the data set. A data set that calls get_worker_info gives each worker a share of its own, of
-- which the worker makes batches. One that does not gives all of them the same samples: worker i of
-- n then makes every n-th batch only, so that the batches are those of no worker.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local fetch = require "ltrain.data.loading.fetch"
local hash = require "ltrain.core.hash"

local data = c.runtime.data

local iterable_samples = {}

-- A function that gives the next sample, several values as a list; and what closes the iterator.
local function reader_of(dataset, epoch)
  local iterator, field, control, closing
  if type(dataset) == "table" then
    iterator, field, control, closing = dataset:iterate()
  else
    iterator, field, control, closing = dataset(epoch)
  end
  if not class.is_callable(iterator) then
    errors.blame("DataLoader: the data set must return an iterator: got %s", errors.show(iterator))
  end
  local function pack(...)
    control = ...
    if control == nil then return nil end
    return select("#", ...) > 1 and { ... } or control
  end
  return function() return pack(iterator(field, control)) end, closing
end

local Sequence = {}
Sequence.__index = Sequence

--- Begins to read. `plan` has loader, collate, seed, epoch, shard and batching; `base` is the
--- number of samples that the data set's own state is past already; `share` the part of a worker
--- (see workers.lua), nil without workers.
function iterable_samples.open(plan, base, share)
  local dataset = plan.loader.dataset
  local shard = type(dataset) == "table" and dataset.shard and plan.shard
  local self = setmetatable({
    plan = plan, share = share, scope = data.sample_scope(), count = base,
    rank = shard and shard.rank or 0, world = shard and shard.world or 1,
  }, Sequence)
  if share then share.counts = true end
  self.next_sample, self.closing = reader_of(dataset, plan.epoch)
  if share then share.counts = false end
  return self
end

-- Keys what is drawn next; in shares of their own workers are distinguished as ranks are.
function Sequence:enter(offset)
  local place, share = self.count, self.share
  if share and share.own then place = place * share.n + share.id end
  local key = offset + place * self.world + self.rank + 1
  return self.scope:enter(self.plan.seed, self.plan.epoch, key)
end

--- The next sample, nil at the end: an iterator that has ended is not called again.
function Sequence:read()
  local kept, share = self.kept, self.share
  if kept ~= nil then
    self.kept, self.count = nil, self.count + 1
    return kept
  end
  if not self.next_sample then return nil end
  local _ <close> = self:enter(0)
  if share then
    share.counts, share.asked = true, function() self:enter(0) end
  end
  local sample = self.next_sample()
  if share then share.counts, share.asked, share.fixed = false, nil, true end
  if sample == nil then self.next_sample = nil else self.count = self.count + 1 end
  return sample
end

--- Reads and drops samples until `count` have been read.
function Sequence:skip_to(count)
  while self.count < count and self:read() ~= nil do end
end

--- Reads the samples of a batch: the list, their positions.
function Sequence:read_list()
  local list, positions = {}, {}
  while #list < self.plan.batching.batch_size do
    local sample = self:read()
    if sample == nil then break end
    list[#list + 1], positions[#list + 1] = sample, self.count
  end
  return list, positions
end

--- The batch of such a list; nil of one that is empty, or short and to be dropped.
function Sequence:collate(list, positions)
  local cut = self.plan.batching
  if #list == 0 or #list < cut.batch_size and cut.drop_last then return nil end
  local _ <close> = self:enter(fetch.OF_BATCHES)
  return fetch.collated(self.plan.collate, list, positions)
end

-- Of samples as workers compare them; nil of what has no hash.
local function hash_of(list)
  local ok, value = pcall(hash, list)
  return ok and value or nil
end

-- Skips what was consumed before, by all or of this worker's own share; which of them, the first
-- sample decides, in front of which get_worker_info was called or not.
local function skip_consumed(self, start)
  local sample = self:read()
  if sample ~= nil then self.kept, self.count = sample, self.count - 1 end
  if not self.share.own then return self:skip_to(start.position) end
  if start.taken < 0 and start.position > 0 then
    errors.blame("DataLoader: the data set calls get_worker_info, and the %d samples before this "
      .. "position were not read by %d workers: how many of each share were is not known",
      start.position, self.share.n)
  end
  self:skip_to(start.taken)
end

--- A function that gives the next answer of a worker: {batch =, count =, own =, first =}, at the
--- end {total =, own =, first =}; nil when is_over() says that nobody waits for it. `start`:
--- {position =, turn =, taken =}: samples consumed by all, the worker whose turn comes first,
--- samples consumed of this worker's own share (-1: not known).
function iterable_samples.answers(plan, base, share, start, is_over)
  local self = iterable_samples.open(plan, base, share)
  local begun, first = false, nil
  local function next_list()
    local list, positions = self:read_list()
    if not begun then begun, first = true, hash_of(list) end
    return list, positions
  end
  return function()
    local others = share.n - 1
    if not begun then
      skip_consumed(self, start)
      others = (share.id - start.turn) % share.n
    end
    for _ = 1, share.own and 0 or others do
      if is_over() then return nil end
      next_list()
    end
    local before = self.count
    local list, positions = next_list()
    local batch = self:collate(list, positions)
    if batch == nil then return { total = self.count, own = share.own, first = first } end
    return { batch = batch, count = self.count - before, own = share.own, first = first }
  end, self.closing
end

return iterable_samples
