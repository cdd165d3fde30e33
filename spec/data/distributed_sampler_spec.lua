-- spec/data/distributed_sampler_spec.lua: each rank's samples, for loops without Trainer.

local lt = require "ltrain"
local error_of = require "spec.error_of"
local has = require "spec.has"

local data <const> = lt.data

-- What each of `world` ranks gets in an epoch.
local function all_of(world, options, epoch)
  local lists = {}
  for rank = 0, world - 1 do
    local own = { rank = rank, world = world }
    for name, value in pairs(options) do own[name] = value end
    local sampler = data.DistributedSampler(own)
    sampler:set_epoch(epoch or 0)
    lists[rank + 1] = sampler:indices()
    assert.equal(#lists[rank + 1], #sampler)
  end
  return lists
end

describe("data.DistributedSampler", function()
  it("deals one after the other, and begins again where it does not divide", function()
    assert.same({ { 1, 3, 5 }, { 2, 4, 1 } }, all_of(2, { length = 5, shuffle = false }))
    assert.same({ { 1 }, { 2 }, { 1 }, { 2 } }, all_of(4, { length = 2, shuffle = false }))
  end)

  it("leaves out what does not divide with drop_last", function()
    assert.same({ { 1, 3 }, { 2, 4 } },
      all_of(2, { length = 5, shuffle = false, drop_last = true }))
  end)

  it("shuffles as a loader does, another order in each epoch", function()
    local loader = data.DataLoader(data.TensorDataset(lt.arange(8)),
      { batch_size = 8, shuffle = true, seed = 6 })
    for epoch = 0, 1 do
      local lists = all_of(2, { length = 8, seed = 6 }, epoch)
      local joined = {}
      for k = 1, 4 do
        joined[2 * k - 1], joined[2 * k] = lists[1][k] - 1, lists[2][k] - 1
      end
      for batch in loader:batches() do assert.same(batch[1]:tolist(), joined) end
    end
  end)

  it("takes the number of ranks by PyTorch's name", function()
    local own = data.DistributedSampler { length = 5, shuffle = false, num_replicas = 2, rank = 1 }
    assert.same({ 2, 4, 1 }, own:indices())
    has(error_of(data.DistributedSampler, { length = 5, world = 3, num_replicas = 2 }),
      "DistributedSampler: world and num_replicas are one number: got 3 and 2")
  end)

  it("is one process's whole data outside of any launch", function()
    local sampler = data.DistributedSampler { dataset = { "a", "b", "c" }, shuffle = false }
    assert.same({ 1, 2, 3 }, sampler:indices())
    local loader = data.DataLoader({ "a", "b", "c" }, { sampler = sampler })
    assert.equal(3, #loader)
    assert.is_true(loader:comes_sharded())
  end)

  it("gets its epoch from the loader", function()
    local sampler = data.DistributedSampler { length = 30, seed = 3 }
    local loader = data.DataLoader(data.TensorDataset(lt.arange(30)),
      { batch_size = 30, sampler = sampler })
    local seen = {}
    for epoch = 1, 2 do
      for batch in loader:batches() do seen[epoch] = batch[1]:tolist() end
    end
    assert.is_not.same(seen[1], seen[2])
    assert.equal(1, sampler.epoch)
  end)

  it("needs a data set or a length, and a rank that is there", function()
    has(error_of(data.DistributedSampler, {}), "give either dataset or length")
    has(error_of(data.DistributedSampler, { length = 3, rank = 2, world = 2 }),
      "rank must be below world = 2: got 2")
  end)
end)
