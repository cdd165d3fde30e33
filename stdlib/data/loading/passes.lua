-- stdlib/data/loading/passes.lua: one walk of a loader through its data.
--
-- A pass has `next()`, which gives a batch, false (only other ranks have one) or nil, `position()`,
-- the count of samples consumed, and `closing`, what ends it early. Four kinds: rows gathered in
-- C, images read in C, samples read by position, samples that come one after the other.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local samples = require "ltrain.data.loading.samples"
local tree = require "ltrain.core.tree"

local data = c.runtime.data

local passes = {}

local function new_pass(plan)
  return {
    epoch = plan.epoch, seed = plan.seed, batching = plan.batching,
    start = plan.position, index = plan.index, length = plan.order and #plan.order,
  }
end

-- Runs get(i); an error in it says which sample it was.
local function read_named(read, position)
  local ok, sample = pcall(read, position)
  if ok then return sample end
  if type(sample) == "string" and not sample:find "interrupted$" then
    sample = ("%s (in sample %d)"):format(sample, position)
  end
  error(sample, 0)
end

-- A tensor, or an object with a method of that name, in pinned memory.
local function pin(leaf)
  local can = c.is_tensor(leaf) and leaf.device == "cpu" or class.has_method(leaf, "pin_memory")
  return can and leaf:pin_memory() or leaf
end

-- The batch that the loader's collate makes of samples.
local function batch_of(plan, list, positions)
  local batch = plan.collate(list, positions)
  if batch == nil then
    errors.blame("DataLoader: collate returned nothing for samples %d to %d", positions[1],
      positions[#positions])
  end
  if plan.batching.pin and c.runtime.pins() then return tree.map(batch, pin) end
  return batch
end

--- Rows of tensors. The feed's thread gathers ahead; the feed is what is closed.
function passes.gathered(plan, columns)
  local pass = new_pass(plan)
  local order = columns.map and plan.order:through(columns.map) or plan.order
  local feed = data.feed(order, columns.tensors, columns.divisors, plan.batching)
  function pass.next()
    local rows = { feed:next() }
    if not rows[1] then return rows[1] end
    return columns.owner:form(rows)
  end
  function pass.position() return math.min(feed:position(), #order) end
  pass.closing = feed
  return pass
end

--- Image files, read and transformed in threads of C; the rows of tensors that belong to them.
function passes.decoded(plan, images)
  local pass = new_pass(plan)
  local files = images.map and plan.order:through(images.map) or plan.order
  local source = images.source
  source.seed, source.epoch = plan.seed, plan.epoch
  local feed = data.image_feed(plan.order, files, source, images.tensors, plan.batching)
  function pass.next()
    local rows = { feed:next() }
    if not rows[1] then return rows[1] end
    return images.owner:form(rows)
  end
  function pass.position() return math.min(feed:position(), #plan.order) end
  pass.closing = feed
  return pass
end

--- Samples by position, read and batched here.
function passes.inline(plan)
  local pass, position = new_pass(plan), plan.position
  local order, read, scope = plan.order, samples.reader(plan.loader.dataset), data.sample_scope()
  local function sample_at(at)
    local _ <close> = scope:enter(plan.seed, plan.epoch, at)
    return read_named(read, at)
  end
  function pass.next()
    local total, first, n = data.span(#order, position, plan.batching)
    if total == 0 then return nil end
    local list, positions = {}, {}
    for k = 1, n do
      positions[k] = order:at((first + k - 2) % #order + 1)
      list[k] = sample_at(positions[k])
    end
    local batch = n > 0 and batch_of(plan, list, positions)
    position = position + total
    return batch
  end
  function pass.position() return math.min(position, #order) end
  return pass
end

local function begin(dataset, epoch)
  if type(dataset) == "table" then return dataset:iterate() end
  return dataset(epoch)
end

-- A function that gives the next sample, several values as a list; and what closes the iterator.
local function reader_of(plan)
  local iterator, held, control, closing = begin(plan.loader.dataset, plan.epoch)
  if not class.is_callable(iterator) then
    errors.blame("DataLoader: the data set must return an iterator: got %s", errors.show(iterator))
  end
  local function pack(...)
    control = ...
    if control == nil then return nil end
    return select("#", ...) > 1 and { ... } or control
  end
  return function() return pack(iterator(held, control)) end, closing
end

--- Samples one after the other; those before the position are read and dropped, unless the data set
--- takes its own state back.
function passes.iterable(plan, saved)
  local pass, position, dataset = new_pass(plan), 0, plan.loader.dataset
  local scope, size = data.sample_scope(), plan.batching.batch_size
  local shard = type(dataset) == "table" and dataset.shard and plan.shard
  local rank, world = shard and shard.rank or 0, shard and shard.world or 1
  if saved and saved.dataset and type(dataset) == "table" and dataset.load_state_dict then
    dataset:load_state_dict(saved.dataset)
    position = plan.position
  end
  local next_sample, closing = reader_of(plan)
  local function read() -- an iterator that has ended is not asked again
    if not next_sample then return nil end
    local _ <close> = scope:enter(plan.seed, plan.epoch, position * world + rank + 1)
    local sample = next_sample()
    if sample ~= nil then position = position + 1 else next_sample = nil end
    return sample
  end
  while position < plan.position and read() ~= nil do end
  local consumed = position -- by whole batches: one that an error cut short does not count
  function pass.next()
    local list, positions = {}, {}
    while #list < size do
      local sample = read()
      if sample == nil then break end
      list[#list + 1], positions[#list + 1] = sample, position
    end
    local batch
    if #list == size or #list > 0 and not plan.batching.drop_last then
      batch = batch_of(plan, list, positions)
    end
    consumed = position
    return batch
  end
  function pass.position() return consumed end
  pass.closing = closing
  return pass
end

return passes
