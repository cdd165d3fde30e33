-- stdlib/data/DistributedSampler.lua: each rank's samples of a data set, for loops without a
-- Trainer.
--
--   local lt = require "ltrain"
--   lt.dist.launch(2, function(rank)
--     local data = lt.data.TensorDataset(lt.arange(7))
--     local sampler = lt.data.DistributedSampler{dataset = data, shuffle = false}
--     local seen = {}
--     local loader = lt.data.DataLoader(data, {batch_size = 2, sampler = sampler})
--     for batch in loader:batches() do seen[#seen + 1] = batch[1] end
--     local all = lt.dist.gather(lt.cat(seen), {to = 0})
--     if rank == 0 then print(all[1], all[2]) end
--   end)
--   -- prints: tensor([0, 2, 4, 6])	tensor([1, 3, 5, 0])
--
-- Rank r takes the entries r, r + world, ... of an order that is the same on all ranks: N ranks
-- together read in one batch each what one process reads in a batch N times as large. All ranks get
-- equally many samples: if the length is not divisible, the first samples are repeated, or the last
-- are dropped with drop_last. The Trainer shards loaders automatically, without repeating samples;
-- it does not shard a loader with this sampler again.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local dataset_protocol = require "ltrain.data.loading.dataset_protocol"
local data_ranks = require "ltrain.dist.data_ranks"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"

local data = c.runtime.data

local DistributedSampler = class.extend(nil, "DistributedSampler")

DistributedSampler.__arguments = "| dataset num_replicas rank shuffle seed drop_last"

local OPTIONS <const> = {
  dataset = { type = "table", doc = "the data set; or give length" },
  length = { type = "integer", min = 1, doc = "number of samples" },
  shuffle = { type = "boolean", default = true, doc = "shuffle the samples in each epoch" },
  seed = { type = "integer", doc = "seed of the order; by default that of lt.seed" },
  drop_last = { type = "boolean", default = false,
    doc = "drop the last samples, instead of repeating the first ones" },
  rank = { type = "integer", min = 0, doc = "by default that of this process" },
  world = { type = "integer", min = 1, doc = "number of ranks; by default all" },
  num_replicas = { type = "integer", min = 1, doc = "PyTorch's name for world" },
}

-- A loader that has it as sampler is not shared again.
DistributedSampler.sharded = true

---@param options table
function DistributedSampler:init(options)
  for name, value in next, config.check(options, OPTIONS, "DistributedSampler") do
    self[name] = value
  end
  if self.world and self.num_replicas and self.world ~= self.num_replicas then
    errors.blame("DistributedSampler: world and num_replicas are one number: got %d and %d",
      self.world, self.num_replicas)
  end
  self.world, self.num_replicas = self.world or self.num_replicas, nil
  if (self.dataset == nil) == (self.length == nil) then
    errors.blame "DistributedSampler: give either dataset or length"
  elseif self.rank and self.rank >= (self.world or dist.world_size()) then
    errors.blame("DistributedSampler: rank must be below world = %d: got %d",
      self.world or dist.world_size(), self.rank)
  end
  self.length = self.length or dataset_protocol.count(self.dataset, "DistributedSampler")
  self.dataset, self.epoch = nil, 0
end

-- The ranks may be started after the sampler is made.
local function place_of(self)
  return self.rank or data_ranks.rank(), self.world or data_ranks.size()
end

--- The number of samples of this rank in an epoch, as of every rank.
function DistributedSampler:__len()
  local _, world = place_of(self)
  return (self.length + (self.drop_last and 0 or world - 1)) // world
end

--- Sets the epoch (from 0) of the order.
function DistributedSampler:set_epoch(epoch)
  self.epoch = config.argument(epoch, "integer", "DistributedSampler", "epoch", { min = 0 })
end

--- Returns the positions of this rank's samples, in order. A loader calls it for each epoch.
function DistributedSampler:indices(_)
  local rank, world = place_of(self)
  local seed = self.shuffle and (self.seed or c.runtime.rng_get().seed) or nil
  local order = data.order(self.length, seed, self.epoch)
  local list = {}
  for k = 1, #self do list[k] = order:at((rank + (k - 1) * world) % self.length + 1) end
  return list
end

return DistributedSampler
