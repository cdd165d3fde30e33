-- stdlib/data/DataLoader.lua: batches of a data set, in a resumable order.
--
--   local lt = require "ltrain"
--   local data = lt.data.TensorDataset(lt.arange(5))
--   local loader = lt.data.DataLoader(data, {batch_size = 2})
--   for batch, i in loader:batches() do print(i, batch[1]) end
--   -- prints: 0	tensor([0, 1])
--   -- prints: 1	tensor([2, 3])
--   -- prints: 2	tensor([4])
--
-- The order is a function of (seed, epoch); a position in it is a count of samples over all ranks.
-- Rows of tensors are gathered in C by a background thread. Other data sets are read in the main
-- thread, or with `num_workers` by processes forked for each pass; the batches are the same,
-- because random numbers in `get` are keyed by (seed, epoch, position).

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local errors = require "ltrain.core.errors"
local loader_position = require "ltrain.data.loading.loader_position"
local passes = require "ltrain.data.loading.passes"
local sample_order = require "ltrain.data.loading.sample_order"

local data = c.runtime.data

local DataLoader = class.extend(nil, "DataLoader")

DataLoader.extend = class.extend
DataLoader.__arguments = "dataset | batch_size shuffle sampler batch_sampler num_workers "
  .. "collate_fn pin_memory drop_last (timeout) worker_init_fn"

-- `for batch in loader do` and `ipairs(loader)` reach these.
local function refuse_loop()
  errors.blame("DataLoader: loop with `for batch, i in loader:batches() do`")
end

DataLoader.__call, DataLoader.__pairs = refuse_loop, refuse_loop

function DataLoader.__index(_, key)
  if math.type(key) == "integer" then refuse_loop() end
  return DataLoader[key]
end

-- Workers of a loader (LT_WORKERS_MAX), batches that they have in flight; batches of tensors.
local MOST_WORKERS <const>, MOST_GATHERED <const> = 256, 16

local OPTIONS <const> = {
  batch_size = { type = "integer", default = 1, min = 1, max = dataset_protocol.MOST,
    doc = "samples per batch of one rank" },
  global_batch_size = { type = "integer", min = 1, max = dataset_protocol.MOST,
    doc = "samples per batch over all ranks, instead of batch_size" },
  shuffle = { type = "boolean", default = false, doc = "shuffle the samples in each epoch" },
  drop_last = { type = "boolean", default = false,
    doc = "drop the last batch if it is incomplete" },
  tail = { type = "string", default = "split", choices = { "split", "wrap" },
    doc = "an incomplete last batch: split over the ranks, or filled up with the first samples" },
  collate = { type = "function", doc = "function(samples) that returns a batch" },
  collate_fn = { type = "function", doc = "PyTorch's name for collate" },
  batch_transform = { doc = "function(batch) that returns a batch, such as lt.transforms.MixUp",
    check = function(value)
      return not class.is_callable(value) and "must be a function: got " .. errors.show(value)
    end },
  seed = { type = "integer", doc = "seed of the order; by default that of lt.seed" },
  sampler = { type = "table|function",
    doc = "list of positions, or function(epoch) returning one" },
  batch_sampler = { type = "table|function",
    doc = "list of lists of positions, function(epoch), or object with batches(epoch)" },
  prefetch = { type = "integer", min = 0, max = MOST_WORKERS,
    doc = "number of prefetched batches over all workers: 2, or 2 for each worker; at most 16 of "
      .. "tensor data" },
  num_workers = { type = "integer", default = 0, min = 0, max = MOST_WORKERS,
    doc = "processes that read and collate samples of data sets written in Lua; iterable data "
      .. "sets are sharded with get_worker_info, else each worker makes every n-th batch" },
  persistent_workers = { type = "boolean", default = false,
    doc = "keep the workers, with their copies of the data set, from one epoch to the next" },
  worker_init_fn = { type = "function",
    doc = "function(id) that is called in each worker before its first sample, id from 0" },
  pin_memory = { type = "boolean", default = false,
    doc = "allocate batches in pinned memory, which is faster to copy to the GPU in use" },
}

-- Pairs of options that say the same thing twice, or nothing together.
local EXCLUDED <const> = {
  { "batch_size", "global_batch_size" }, { "shuffle", "sampler" }, { "shuffle", "batch_sampler" },
  { "sampler", "batch_sampler" }, { "batch_size", "batch_sampler" },
  { "global_batch_size", "batch_sampler" }, { "drop_last", "batch_sampler" },
}

local function check_together(options)
  for _, pair in ipairs(EXCLUDED) do
    if options[pair[1]] and options[pair[2]] then
      errors.blame("DataLoader: %s and %s exclude each other", pair[1], pair[2])
    end
  end
  if options.tail == "wrap" and (options.drop_last or options.batch_sampler) then
    errors.blame("DataLoader: tail = 'wrap' and %s exclude each other",
      options.drop_last and "drop_last" or "batch_sampler")
  end
end

local function check_workers(options)
  local n, prefetch = options.num_workers, options.prefetch
  if n == 0 then
    for _, name in ipairs { "persistent_workers", "worker_init_fn" } do
      if options[name] then errors.blame("DataLoader: %s needs num_workers = 1 or more", name) end
    end
    if prefetch and prefetch > MOST_GATHERED then
      errors.blame("DataLoader: prefetch without workers must be at most %d: got %d",
        MOST_GATHERED, prefetch)
    end
  elseif prefetch and prefetch < n then
    errors.blame("DataLoader: prefetch = %d batches in flight leave some of num_workers = %d "
      .. "without work: give at least as many", prefetch, n)
  end
end

-- `DataLoader{set, batch_size = 4}`: a list of samples has no names.
local function check_list(list)
  for key in next, list do
    if OPTIONS[key] then
      errors.blame("DataLoader: %s is among the samples: options are a separate table: "
        .. "DataLoader(dataset, {%s = ...})", key, key)
    end
  end
end

local function check_dataset(self)
  local dataset = self.dataset
  if type(dataset) == "table" and getmetatable(dataset) == nil then check_list(dataset) end
  if self._iterable then
    for _, name in ipairs { "shuffle", "sampler", "batch_sampler" } do
      if self[name] then
        errors.blame("DataLoader: %s needs a data set with get(i) and a length: samples of this "
          .. "one come one after the other", name)
      end
    end
  elseif not dataset_protocol.is_indexed(dataset) then
    errors.blame("DataLoader: dataset must have get(i) and a length, or be iterable: got %s%s",
      errors.show(dataset),
      type(dataset) == "userdata" and ": write lt.data.TensorDataset(x)" or "")
  elseif dataset_protocol.count(dataset, "DataLoader") == 0 then
    errors.blame("DataLoader: the data set is empty")
  end
end

---@param dataset Dataset|IterableDataset|function|table
function DataLoader:init(dataset, options)
  local checked = config.check(options, OPTIONS, "DataLoader")
  check_together(options or {})
  check_workers(checked)
  checked.collate = checked.collate or checked.collate_fn
  for name, value in next, checked do self[name] = value end
  self.batch_size = self.global_batch_size or self.batch_size
  self.dataset, self.epoch = dataset, 0
  self._iterable = dataset_protocol.is_iterable(dataset)
  check_dataset(self)
end

--- Returns the seed of the order: that of the checkpoint, of the options, or of lt.seed.
function DataLoader:order_seed()
  return self._seed or self.seed or c.runtime.rng_get().seed
end

--- Makes this the loader of rank `rank` of `world`. Each global batch, of `world * batch_size` or
--- `global_batch_size` samples, is split into contiguous slices; a rank without a sample gets
--- `false`. `kind` is the purpose: "train"; "val" or "test", where a tail smaller than `world` is
--- added to the batch before it; "predict", where the whole batch k goes to rank k % world, as
--- batches of a batch_sampler always do; "own", where each rank reads all its data and only the
--- batch size is split. A sampler with `sharded = true` is not sharded again; `shard(rank, world)`
--- of an iterable data set is called. `batches_of`: each global batch is that of so many ranks, of
--- `batches_of * batch_size` samples, whatever `world` is; not with a `batch_sampler`, and of data
--- that is already sharded only if all ranks get as many samples. Without arguments the loader
--- is whole again. Returns false if the data cannot be sharded: an iterable data set without
--- `shard`.
function DataLoader:shard(rank, world, kind, batches_of)
  local whole = rank == nil
  if not whole then
    config.argument(world, "integer", "DataLoader:shard", "world", { min = 1, max = 1 << 20 })
    config.argument(rank, "integer", "DataLoader:shard", "rank", { min = 0, max = world - 1 })
    whole = world == 1 and not batches_of
  end
  if batches_of then
    config.argument(batches_of, "integer", "DataLoader:shard", "batches_of",
      { min = 1, max = 1 << 20 })
  end
  local global = self.global_batch_size
  if global and not whole and not batches_of and global < world then
    errors.blame("DataLoader: global_batch_size = %d is less than a sample for each of %d ranks",
      global, world)
  end
  if not sample_order.can_keep_batches(self, world, batches_of) then batches_of = nil end
  self._shard = not whole and { rank = rank, world = world, kind = kind or "train",
    batches_of = batches_of } or nil
  if global then self.batch_size = whole and global or sample_order.part(global, 0, world) end
  if not self._iterable or kind == "own" then return true end
  if not class.has_method(self.dataset, "shard") then return whole or world == 1 end
  local other = self.dataset:shard(whole and 0 or rank, whole and 1 or world)
  if type(other) == "table" and other ~= self.dataset then
    errors.blame("DataLoader: shard(rank, world) of the data set made another one: it must change "
      .. "what the data set itself gives from then on")
  end
  return true
end

--- Returns the number of prefetched batches, over all workers.
function DataLoader:in_flight()
  return self.prefetch or math.min(2 * math.max(self.num_workers, 1), MOST_WORKERS)
end

--- Returns another loader of the same data, with its own position.
function DataLoader:copy()
  local copy = setmetatable({}, getmetatable(self))
  for name, value in next, self do copy[name] = value end
  copy._pass, copy._saved, copy._crew = nil, nil, nil
  return copy
end

--- Returns whether the data is already sharded: by the sampler, or because the data set is
--- iterable.
function DataLoader:comes_sharded()
  return sample_order.comes_sharded(self)
end

--- Returns the number of samples in a global batch; nil with a batch_sampler.
function DataLoader:global_batch()
  if self.batch_sampler then return nil end
  local shard = self._shard
  return self.global_batch_size
    or self.batch_size * (shard and (shard.batches_of or shard.world) or 1)
end

--- Returns whether global batches are those of another number of ranks than there are.
function DataLoader:keeps_batches()
  return self._shard ~= nil and self._shard.batches_of ~= nil
end

--- Returns the number of batches in an epoch, the same on every rank; nil if it is unknown.
function DataLoader:length()
  local n, cut = loader_position.extent(self, self.epoch)
  return n and data.batch_count(n, 0, cut)
end

function DataLoader:__len()
  local n = self:length()
  if not n then errors.blame("DataLoader: the length of an iterable data set is unknown") end
  return n
end

--- Sets the epoch (from 0) of the next pass.
function DataLoader:set_epoch(epoch)
  self.epoch = config.argument(epoch, "integer", "DataLoader", "epoch", { min = 0 })
  self._begun, self._saved, self._pass = false, nil, nil
end

-- The epoch of the pass that begins now; without set_epoch each pass is a new one.
local function next_epoch(self)
  if self._begun then self.epoch = self.epoch + 1 end
  self._begun = true
  return self.epoch
end

--- Returns the number of batches before the position of `state` (see state_dict), in the current
--- batch size.
function DataLoader:batches_before(state)
  loader_position.check_state(state)
  local n, cut = loader_position.extent(self, state.epoch or self.epoch)
  return loader_position.batches_before(n, cut, loader_position.position(self, n, state))
end

--- Iterates over (batch, index): the batches of an epoch, from number `position` on (from 0; by
--- default from the start, or from the position that load_state_dict has set). A batch is `false`
--- if only other ranks have samples of it. Leaving the loop early stops the background thread, or
--- the workers.
function DataLoader:batches(position)
  if position ~= nil then
    config.argument(position, "integer", "DataLoader:batches", "position", { min = 0 })
  end
  local epoch = next_epoch(self)
  local pass = loader_position.open(self, epoch, position)
  self._pass, self._saved = pass, nil
  local index = pass.index - 1
  local function step()
    local batch = pass.next()
    if batch == nil then
      pass.done = true
      return nil
    end
    index = index + 1
    return batch, index
  end
  return step, nil, nil, pass.closing
end

--- Returns how many ranks, the first ones, have samples of batch `index` of the current pass; nil
--- if all do.
function DataLoader:active_ranks(index)
  local pass, cut = self._pass, self._pass and self._pass.batching
  if not pass or not pass.length or (cut.world or 1) == 1 then return nil end
  config.argument(index, "integer", "DataLoader:active_ranks", "index", { min = pass.index })
  local at = data.batch_skip(pass.length, pass.start, index - pass.index, cut)
  local _, _, _, ranks = data.span(pass.length, at, cut)
  return ranks < cut.world and ranks or nil
end

--- Returns the number of samples of batch `index` of the current pass that each rank has at least,
--- of those that have any; nil for iterable data sets.
function DataLoader:least_samples(index)
  local pass = self._pass
  if not pass or not pass.length then return nil end
  config.argument(index, "integer", "DataLoader:least_samples", "index", { min = pass.index })
  local at = data.batch_skip(pass.length, pass.start, index - pass.index, pass.batching)
  local total, _, _, ranks = data.span(pass.length, at, pass.batching)
  return total // math.max(ranks, 1)
end

--- Returns the positions in the data set of this rank's samples of batch `index` of the current
--- pass, as `get` takes them; nil for iterable data sets.
function DataLoader:batch_indices(index)
  local pass = self._pass
  if not pass or not pass.order then return nil end
  config.argument(index, "integer", "DataLoader:batch_indices", "index", { min = pass.index })
  local at = data.batch_skip(pass.length, pass.start, index - pass.index, pass.batching)
  local step = passes.step_at(pass.order, at, pass.batching)
  return step and step.positions or {}
end

--- Returns a fingerprint of the order and batches of the current pass, which ranks compare: {hash,
--- length, first, cut}; nil for iterable data sets.
function DataLoader:fingerprint()
  local pass = self._pass
  return pass and pass.order and sample_order.fingerprint(self, pass.order, pass.batching.lasts)
end

-- Whether the data set has a state of its own that is that of the pass: workers have copies of it.
local function keeps_state(self)
  return self.num_workers == 0 and class.has_method(self.dataset, "state_dict")
end

--- Returns the state to resume the current pass: its epoch, and the number of samples consumed.
function DataLoader:state_dict()
  local pass, saved = self._pass, self._saved
  if not pass then
    return saved or { epoch = self.epoch, position = 0, seed = self:order_seed() }
  end
  if pass.done then return { epoch = pass.epoch + 1, position = 0, seed = pass.seed } end
  return {
    epoch = pass.epoch, position = pass.position() * loader_position.ranks(self), seed = pass.seed,
    samples = pass.samples, shares = pass.shares and pass.shares(),
    ranks = loader_position.sharing_ranks(self),
    dataset = keeps_state(self) and self.dataset:state_dict() or nil,
  }
end

--- Returns the state with which the next pass begins; nil unless the data set has its own state.
function DataLoader:state_after()
  local pass = self._pass
  if not pass or not keeps_state(self) then return nil end
  return { epoch = pass.epoch + 1, position = 0, seed = pass.seed,
    dataset = self.dataset:state_dict() }
end

--- Returns the state before batch `index` of the current pass; nil for iterable data sets.
function DataLoader:state_before(index)
  local pass = self._pass
  if not pass or not pass.length then return nil end
  config.argument(index, "integer", "DataLoader:state_before", "index", { min = pass.index })
  local at = data.batch_skip(pass.length, pass.start, index - pass.index, pass.batching)
  return {
    epoch = pass.epoch, position = math.min(at, pass.length) * loader_position.ranks(self),
    seed = pass.seed, samples = pass.samples,
  }
end

--- Whether state_dict, after an error while reading, is still the state before the read.
function DataLoader:rewinds()
  return not keeps_state(self)
end

--- Makes the next pass resume from `state`.
function DataLoader:load_state_dict(state)
  loader_position.check_state(state)
  self:set_epoch(state.epoch or 0)
  self._saved, self._seed = state, state.seed
end

return DataLoader
