-- stdlib/data/loading/passes.lua: one iteration over a DataLoader (PyTorch's _BaseDataLoaderIter):
-- in this process, or by workers.
--
-- A pass has `next()`, which gives a batch, false (only other ranks have one) or nil, `position()`,
-- the count of samples consumed, and `closing`, what ends it early. Kinds: rows gathered in C,
-- images read in C; samples by position, read here or by workers; samples that come one after the
-- other.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local fetch = require "ltrain.data.loading.fetch"
local tree = require "ltrain.core.tree"

local data = c.runtime.data

local passes = {}

local function new_pass(plan)
  return {
    epoch = plan.epoch, seed = plan.seed, batching = plan.batching,
    start = plan.position, index = plan.index, length = plan.order and #plan.order,
  }
end

-- A tensor, or an object with a method of that name, in pinned memory.
local function pin(leaf)
  local can = c.is_tensor(leaf) and leaf.device == "cpu" or class.has_method(leaf, "pin_memory")
  return can and leaf:pin_memory() or leaf
end

local function pinned(plan, batch)
  if batch and plan.batching.pin and c.runtime.pins() then return tree.map(batch, pin) end
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
  local threads = plan.loader.num_workers
  plan.batching.threads = threads > 0 and threads or nil -- else as many as operations have
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

-- pcall of what is raised again: a debugger looks at it where it was raised.
local raised <const> = c.runtime.frames.raised
local function protect(fn, ...) return xpcall(fn, raised, ...) end

--- The step at a position of an order: {total =, positions =, first =}, nil at the end. Other ranks
--- have the samples that are not in `positions`.
function passes.step_at(order, position, batching)
  local total, first, n = data.span(#order, position, batching)
  if total == 0 then return nil end
  local positions = {}
  for k = 1, n do positions[k] = order:at((first + k - 2) % #order + 1) end
  return { total = total, positions = positions, first = first }
end

--- Samples by position, read and batched here.
function passes.inline(plan)
  local pass, position = new_pass(plan), plan.position
  local read = fetch.batches(plan.loader.dataset, plan.collate, protect)
  function pass.next()
    local step = passes.step_at(plan.order, position, plan.batching)
    if not step then return nil end
    local batch = #step.positions > 0
      and read(plan.seed, plan.epoch, step.positions, step.first)
    position = position + step.total
    return pinned(plan, batch)
  end
  function pass.position() return math.min(position, #plan.order) end
  return pass
end

--- The same, read and batched by workers, `prefetch` batches ahead in all.
function passes.by_workers(plan)
  local workers <const> = require "ltrain.data.loading.workers"
  local pass, position, ahead = new_pass(plan), plan.position, plan.position
  local crew, under_way = nil, {}
  local function stop(keep)
    local ended = crew
    crew, under_way, ahead = nil, {}, position
    if ended then ended:leave(keep) end
  end
  local function order_more()
    while #under_way < plan.loader:in_flight() do
      local step = passes.step_at(plan.order, ahead, plan.batching)
      if not step then return end
      local must = #under_way == 0
      if #step.positions > 0 and not crew:order(plan.seed, plan.epoch, step, must) then return end
      under_way[#under_way + 1], ahead = step, ahead + step.total
    end
  end
  -- Stops the workers if what it calls raises: the next batch is then read anew.
  local function guarded(fn, ...)
    local ok, value = protect(fn, ...)
    if ok then return value end
    stop(false)
    error(value, 0)
  end
  function pass.next()
    crew = crew or workers.join(plan)
    guarded(order_more)
    local step = table.remove(under_way, 1)
    if not step then return stop(true) end
    local batch = #step.positions > 0 and guarded(crew.take, crew, step)
    position = position + step.total
    guarded(order_more)
    return pinned(plan, batch)
  end
  function pass.position() return math.min(position, #plan.order) end
  pass.closing = setmetatable({}, { __close = function() stop(true) end })
  return pass
end

--- Samples one after the other; those before the position are read and dropped, but for `base`
--- samples that the data set's own state is past.
function passes.in_sequence(plan, base)
  local pass = new_pass(plan)
  local samples = require "ltrain.data.loading.iterable_samples".open(plan, base)
  samples:skip_to(plan.position)
  local consumed = samples.count -- by whole batches: one that an error cut short does not count
  function pass.next()
    local batch = samples:collate(samples:read_list())
    consumed = samples.count
    return pinned(plan, batch)
  end
  function pass.position() return consumed end
  pass.closing = samples.closing
  return pass
end

--- The same, read by workers in turn; `shares`: see iterable_workers.lua.
function passes.in_turns(plan, base, shares)
  local iterable_workers <const> = require "ltrain.data.loading.iterable_workers"
  local pass, turn = new_pass(plan), iterable_workers(plan, base, shares)
  function pass.next() return pinned(plan, turn:next_batch()) end
  function pass.position() return turn.position end
  function pass.shares() return turn:shares() end
  pass.closing = setmetatable({}, { __close = function() turn:stop(true) end })
  return pass
end

--- Batches of a pass go through the loader's batch_transform, with random numbers keyed by the
--- number of the batch.
function passes.transformed(pass, loader)
  local next_batch, number, shard = pass.next, pass.index, loader._shard
  local rank, world = shard and shard.rank or 0, shard and shard.world or 1
  local scope = data.sample_scope()
  function pass.next()
    local batch, own = next_batch(), -1 - (number * world + rank) -- samples have keys from 1 on
    number = number + 1
    if not batch then return batch end
    local _ <close> = scope:enter(pass.seed, pass.epoch, own)
    local changed = loader.batch_transform(batch)
    if changed == nil then errors.blame("DataLoader: batch_transform returned nothing") end
    return changed
  end
  return pass
end

return passes
