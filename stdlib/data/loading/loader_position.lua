-- stdlib/data/loading/loader_position.lua: the position at which a loader starts or resumes
-- reading, in samples and in batches.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collate = require "ltrain.data.collate"
local config = require "ltrain.core.config"
local console = require "ltrain.core.console"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"
local passes = require "ltrain.data.loading.passes"
local sample_order = require "ltrain.data.loading.sample_order"
local tree = require "ltrain.core.tree"

local data = c.runtime.data

local loader_position = {}

--- Samples of an epoch (nil: unknown), and how they are cut.
function loader_position.extent(loader, epoch)
  if loader._iterable then
    return dataset_protocol.length_of_iterable(loader.dataset), sample_order.batching(loader)
  elseif not (loader.sampler or loader.batch_sampler) then
    return dataset_protocol.count(loader.dataset, "DataLoader"), sample_order.batching(loader)
  end
  local order, lasts = sample_order.order(loader, epoch)
  return #order, sample_order.batching(loader, lasts)
end

--- A position counts the samples of all ranks: of how many, where each reads its own.
function loader_position.ranks(loader)
  local shard = loader._shard
  return shard and not loader._iterable and sample_order.comes_sharded(loader) and shard.world or 1
end

--- Ranks that share the samples of an iterable data set, each counting its own; nil where none are
--- shared.
function loader_position.sharing_ranks(loader)
  local dataset, shard = loader.dataset, loader._shard
  if not loader._iterable or type(dataset) ~= "table" or not dataset.shard then return nil end
  return shard and shard.world or 1
end

-- The numbers of a state; `dataset` is what the data set itself has kept, `ranks` how many each had
-- consumed `position` samples of a shared stream.
local STATE <const> = {
  epoch = { min = 0 }, position = { required = true, min = 0 },
  samples = { min = 0 }, seed = {}, ranks = { min = 1 },
}

-- Of workers that each have a share of an iterable data set.
local function check_shares(shares)
  local where <const> = "DataLoader: state: shares"
  local taken = config.argument(shares, "table", "DataLoader: state", "shares").taken
  config.argument(taken, "table", where, "taken")
  for _, count in ipairs(taken) do
    config.argument(count, "integer", where, "taken", { min = 0 })
  end
  config.argument(shares.turn, "integer", where, "turn", { min = 0, max = #taken - 1 })
end

--- Raises unless `state` is what state_dict gives.
function loader_position.check_state(state)
  if type(state) ~= "table" or getmetatable(state) ~= nil then
    errors.blame("DataLoader: this is not the state of a loader: got %s", errors.show(state))
  end
  for name, bounds in tree.pairs(STATE) do
    if state[name] ~= nil or bounds.required then
      config.argument(state[name], "integer", "DataLoader: state", name, bounds)
    end
  end
  if state.shares ~= nil then check_shares(state.shares) end
end

--- The position in this rank's order of n samples (nil: unknown) that a state says.
function loader_position.position(loader, n, state)
  local ranks = loader_position.ranks(loader)
  local position = state.position // ranks
  local now = loader_position.sharing_ranks(loader)
  if now and state.ranks and state.ranks ~= now then -- rank r has each now-th sample from r on
    local rank = loader._shard and loader._shard.rank or 0
    position = (state.position * state.ranks - rank + now - 1) // now
  end
  if not n then return position end
  if position > n and ranks == 1 and not loader._iterable then
    errors.blame("DataLoader: the state was taken after sample %d, the epoch has %d samples",
      position, n)
  end
  return math.min(position, n) -- other ranks may have filled up their parts
end

--- Batches before a position, of those that an epoch of n samples (nil: unknown) has; the last one
--- may be short.
function loader_position.batches_before(n, cut, position)
  if not n then return (position + cut.batch_size - 1) // cut.batch_size end
  return data.batch_count(n, 0, cut) - data.batch_count(n, position, cut)
end

-- A state taken in mid-epoch says where to resume in the order of a data set of its size.
local function warn_other_size(loader, position, now)
  local before = loader._saved and loader._saved.samples
  if position == 0 or before == nil or before == now then return end
  local text = "warning: DataLoader: the epoch that is resumed after sample %d had a data set "
    .. "of %d "
    .. "samples, now it has %d: other samples follow than in the run that saved it"
  console.say(text:format(position, before, now))
end

-- The position and the number of the first batch: of batch `index`, of the state that was loaded,
-- or of the start.
local function start_of(loader, n, cut, index)
  if index and n then return data.batch_skip(n, 0, index, cut), index end
  if index then
    return math.min(index, dataset_protocol.MOST // cut.batch_size) * cut.batch_size, index
  end
  local position = loader._saved and loader_position.position(loader, n, loader._saved) or 0
  return position, loader_position.batches_before(n, cut, position)
end

-- What the data set says of itself that C can read without it; nil where it has to be asked.
local function in_c(loader, name)
  local dataset = loader.dataset
  return not loader.collate and type(dataset[name]) == "function" and dataset[name](dataset) or nil
end

-- A pass over samples by position.
local function open_indexed(loader, plan)
  local count = dataset_protocol.count(loader.dataset, "DataLoader")
  warn_other_size(loader, plan.position, count)
  local columns, images = in_c(loader, "columns"), in_c(loader, "images")
  local open = columns and passes.gathered or images and passes.decoded
    or loader.num_workers > 0 and passes.by_workers or passes.inline
  local pass = open(plan, columns or images)
  pass.samples, pass.order = count, plan.order
  return pass
end

-- A pass over samples that come one after the other. A data set with a state of its own takes it
-- back here, before workers are forked with it.
local function open_iterable(loader, plan)
  local saved, base, n = loader._saved or {}, 0, loader.num_workers
  local shares = saved.shares
  if shares and #shares.taken ~= n then
    errors.blame("DataLoader: the state was taken with num_workers = %d, each worker having a "
      .. "share of the samples: resume with as many: got %d", #shares.taken, n)
  end
  if saved.dataset and class.has_method(loader.dataset, "load_state_dict") then
    loader.dataset:load_state_dict(saved.dataset)
    base, plan.state_loaded = plan.position, true
  end
  if n > 0 then return passes.in_turns(plan, base, shares) end
  return passes.in_sequence(plan, base)
end

--- Opens a pass of `epoch` at batch number `index` (nil: where load_state_dict has put the loader,
--- or at the start).
function loader_position.open(loader, epoch, index)
  local plan = { epoch = epoch, seed = loader:order_seed(), loader = loader,
    shard = loader._shard, collate = loader.collate or collate }
  local lasts
  if not loader._iterable then plan.order, lasts = sample_order.order(loader, epoch) end
  plan.batching = sample_order.batching(loader, lasts)
  local n = plan.order and #plan.order or nil
  plan.position, plan.index = start_of(loader, n, plan.batching, index)
  plan.batching.position = plan.position
  local pass = loader._iterable and open_iterable(loader, plan)
    or open_indexed(loader, plan)
  return loader.batch_transform and passes.transformed(pass, loader) or pass
end

return loader_position
