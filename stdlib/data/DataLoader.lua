-- stdlib/data/DataLoader.lua: batches of a data set, in an order that can be gone on with.
--
--   for batch, i in loader:batches() do ... end
--
-- The order is a pure function of (seed, epoch); a position in it is a count of samples. Rows of
-- tensors are gathered in C by a helper thread; other data sets are read inline, each sample with
-- random numbers keyed by (seed, epoch, position).

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local collate = require "ltrain.data.collate"
local config = require "ltrain.core.config"
local console = require "ltrain.trainer.console"
local errors = require "ltrain.core.errors"
local passes = require "ltrain.data.loading.passes"
local samples = require "ltrain.data.loading.samples"

local data = c.runtime.data

local DataLoader = class.extend(nil, "DataLoader")

DataLoader.extend = class.extend

local OPTIONS <const> = {
  batch_size = { type = "integer", default = 1, min = 1, doc = "samples in a batch" },
  shuffle = { type = "boolean", default = false, doc = "another order in each epoch" },
  drop_last = { type = "boolean", default = false, doc = "leave out a last batch that is short" },
  collate = { type = "function", doc = "makes a batch of a list of samples" },
  seed = { type = "integer", doc = "of the order; default: that of lt.seed" },
  sampler = { type = "table|function", doc = "list of positions, or function(epoch) giving one" },
  prefetch = { type = "integer", default = 2, min = 0, max = 16,
    doc = "batches of tensor data gathered ahead" },
}

---@param dataset Dataset|IterableDataset|function|table
function DataLoader:init(dataset, options)
  options = config.check(options, OPTIONS, "DataLoader")
  for name, value in next, options do self[name] = value end
  self.dataset, self.epoch = dataset, 0
  self._iterable = samples.is_iterable(dataset)
  if self._iterable then
    if self.shuffle or self.sampler then
      errors.blame("DataLoader: %s needs a data set with get(i) and a length: samples of this one "
        .. "come one after the other", self.shuffle and "shuffle" or "sampler")
    end
    return
  elseif not samples.is_indexed(dataset) then
    errors.blame("DataLoader: dataset must have get(i) and a length, or be iterable: got %s",
      errors.show(dataset))
  elseif self.shuffle and self.sampler then
    errors.blame("DataLoader: shuffle and sampler exclude each other")
  end
  if samples.count(dataset, "DataLoader") == 0 then
    errors.blame("DataLoader: the data set is empty")
  end
end

local function has_method(value, name)
  return type(value) == "table" and type(value[name]) == "function"
end

-- The seed of the order: what a checkpoint said, what the user said, or that of all.
local function seed_of(self)
  return self._seed or self.seed or c.runtime.rng_get().seed
end

local function ask_sampler(self, epoch)
  local sampler = self.sampler
  if has_method(sampler, "indices") then return sampler:indices(epoch) end
  if type(sampler) == "function" then return sampler(epoch) end
  return sampler
end

-- The order of an epoch.
local function order_of(self, epoch)
  local n = samples.count(self.dataset, "DataLoader")
  if self.shuffle then return data.order(n, seed_of(self), epoch) end
  if not self.sampler then return data.order(n) end
  local list = ask_sampler(self, epoch)
  if type(list) ~= "table" then
    errors.blame("DataLoader: the sampler must give a list of positions: got %s",
      errors.show(list))
  end
  return data.order_of(list, n)
end

-- Samples of an epoch.
local function count(self)
  return self.sampler and #order_of(self, self.epoch) or samples.count(self.dataset, "DataLoader")
end

-- How the order is cut: into batches of all ranks together, of which this one takes its part.
local function batching(self)
  local shard = self._shard
  return {
    batch_size = self.batch_size * (shard and shard.world or 1), drop_last = self.drop_last,
    prefetch = self.prefetch, rank = shard and shard.rank, world = shard and shard.world,
    evaluation = shard ~= nil,
  }
end

--- From here on this is the loader of rank `rank` of `world`, which share each global batch of
--- `world * batch_size` samples; a last batch smaller than `world` is joined to the one before it.
--- Without arguments it is whole again. False when it cannot be cut: an iterable data set.
function DataLoader:shard(rank, world)
  if self._iterable then return false end
  self._shard = nil
  if not rank or world == 1 then return true end
  local n = count(self)
  if n < world then
    errors.blame("DataLoader: %d samples cannot be shared by %d ranks", n, world)
  end
  self._shard = { rank = rank, world = world }
  return true
end

--- Batches in an epoch; nil when the data set does not know.
function DataLoader:length()
  local n
  if self._iterable then
    n = samples.length_of_iterable(self.dataset)
    if not n then return nil end
  else
    n = count(self)
  end
  return data.batch_count(n, 0, batching(self))
end

function DataLoader:__len()
  local n = self:length()
  if not n then errors.blame("DataLoader: the length of an iterable data set is unknown") end
  return n
end

--- The next pass is that of epoch `epoch` (a count).
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

-- A state taken in mid-epoch says where to go on in the order of a data set of its size.
local function tell_other_size(self, position)
  local before = self._saved and self._saved.samples
  local now = samples.count(self.dataset, "DataLoader")
  if position == 0 or before == nil or before == now then return end
  local text = "warning: DataLoader: the epoch that goes on after sample %d had a data set of %d "
    .. "samples, now it has %d: other samples follow than would have"
  console.say(text:format(position, before, now))
end

local function open(self, epoch, position)
  local given = { epoch = epoch, position = position, seed = seed_of(self), loader = self,
    batching = batching(self), collate = self.collate or collate }
  given.batching.position = position
  if self._iterable then return passes.iterable(given, self._saved) end
  tell_other_size(self, position)
  given.order = order_of(self, epoch)
  local columns = not self.collate and has_method(self.dataset, "columns")
    and self.dataset:columns()
  if columns then return passes.gathered(given, columns) end
  return passes.inline(given)
end

--- An iterator over (batch, index): the batches of an epoch from number `position` on (a count;
--- absent: from the start, or from where load_state_dict has put it). A loop that is left early
--- stops the helper thread.
function DataLoader:batches(position)
  local saved = self._saved
  local epoch = next_epoch(self)
  local global = batching(self).batch_size
  local first = position and position * global or saved and saved.position or 0
  local pass = open(self, epoch, first)
  pass.samples = not self._iterable and samples.count(self.dataset, "DataLoader") or nil
  self._pass, self._saved = pass, nil
  local index = first // global - 1
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

--- What goes on with the pass that is open: its epoch, and how many of its samples were consumed.
function DataLoader:state_dict()
  local pass, saved = self._pass, self._saved
  if not pass then return saved or { epoch = self.epoch, position = 0, seed = seed_of(self) } end
  if pass.done then return { epoch = pass.epoch + 1, position = 0, seed = pass.seed } end
  return {
    epoch = pass.epoch, position = pass.position(), seed = pass.seed, samples = pass.samples,
    dataset = has_method(self.dataset, "state_dict") and self.dataset:state_dict() or nil,
  }
end

--- Whether state_dict, after a read that an error cut short, is still that from before it.
function DataLoader:rewinds()
  return not has_method(self.dataset, "state_dict")
end

--- The next pass goes on where `state` was taken.
function DataLoader:load_state_dict(state)
  if type(state) ~= "table" or math.type(state.position) ~= "integer" then
    errors.blame("DataLoader: this is not the state of a loader: got %s", errors.show(state))
  end
  self:set_epoch(state.epoch)
  self._saved, self._seed = state, state.seed
end

return DataLoader
