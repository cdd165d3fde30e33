-- spec/data/shard_spec.lua: one loader as the loaders of several ranks.

local lt = require "ltrain"
local error_of = require "spec.error_of"
local has = require "spec.has"
local numbers = require "spec.data.numbers"

local data <const> = lt.data
local list <const>, tensors <const> = numbers.list, numbers.tensors

-- What rank `rank` of `world` reads: lists of numbers, or false, one a step; and how many ranks
-- have samples in each (0: all).
local function read(loader, rank, world, kind, position)
  assert.is_true(loader:shard(rank, world, kind))
  local steps, active = {}, {}
  for batch, i in loader:batches(position) do
    steps[#steps + 1] = batch and batch[1]:tolist()
    active[#active + 1] = loader:active_ranks(i) or 0
  end
  return steps, active
end

-- The steps of all ranks beside each other: "0,1|2,3" a step, "-" for a rank without samples.
local function table_of(make, world, kind, position)
  local rows, count = {}, nil
  for rank = 0, world - 1 do
    local loader = make()
    local steps = read(loader, rank, world, kind, position)
    count = count or #steps
    assert.equal(count, #steps)
    if not position then assert.equal(count, loader:length()) end
    for k, own in ipairs(steps) do
      rows[k] = (rows[k] and rows[k] .. "|" or "") .. (own and table.concat(own, ",") or "-")
    end
  end
  return rows
end

for name, make in pairs { ["gathered in C"] = tensors, ["read by Lua"] = list } do
  describe("data.DataLoader:shard, samples " .. name, function()
    local function loader(n, options)
      return function() return data.DataLoader(make(n), options) end
    end

    it("cuts each batch of all ranks into slices", function()
      assert.same({ "0,1|2,3", "4,5|6,7" }, table_of(loader(8, { batch_size = 2 }), 2))
    end)

    it("splits a short last batch, and gives false to ranks that have none of it", function()
      assert.same({ "0,1|2,3|4,5", "6,7|8|9" }, table_of(loader(10, { batch_size = 2 }), 3))
      assert.same({ "0,1|2,3|4,5", "6|7|-" }, table_of(loader(8, { batch_size = 2 }), 3))
      assert.same({ "0|-" }, table_of(loader(1), 2))
    end)

    it("shares a tail smaller than the ranks with the batch before it in evaluation", function()
      assert.same({ "0,1|2,3|4", "5|6|7" }, table_of(loader(8, { batch_size = 2 }), 3, "val"))
      assert.same({ "0,1|2|3" }, table_of(loader(4), 3, "test"))
      assert.same({ "0|1|-" }, table_of(loader(2, { batch_size = 2 }), 3, "val"))
    end)

    it("leaves out a short batch of all ranks with drop_last", function()
      assert.same({ "0,1|2,3" },
        table_of(loader(7, { batch_size = 2, drop_last = true }), 2))
    end)

    it("fills a short batch up from the start with tail = 'wrap'", function()
      local options = { batch_size = 2, tail = "wrap" }
      assert.same({ "0,1|2,3|4,5", "6|7|0" }, table_of(loader(8, options), 3))
      assert.same({ "0|1|0|1|0" }, table_of(loader(2, options), 5))
      assert.same({ "0,1", "2" }, table_of(loader(3, options), 1))
    end)

    it("divides global_batch_size, evenly or nearly so", function()
      local options = { global_batch_size = 4 }
      assert.same({ "0,1,2,3", "4,5" }, table_of(loader(6, options), 1))
      assert.same({ "0,1|2,3", "4|5" }, table_of(loader(6, options), 2))
      assert.same({ "0,1|2|3", "4|5|-" }, table_of(loader(6, options), 3))
      local one = loader(6, options)()
      assert.equal(4, one.batch_size)
      one:shard(2, 3)
      assert.equal(2, one.batch_size)
      assert.equal(4, one:global_batch())
      one:shard()
      assert.equal(4, one.batch_size)
    end)

    it("deals whole batches for predictions", function()
      local options = { batch_size = 2 }
      assert.same({ "0,1|2,3", "4|-" }, table_of(loader(5, options), 2, "predict"))
      assert.same({ "0,1|2,3" }, table_of(loader(5, { batch_size = 2, drop_last = true }), 2,
        "predict"))
    end)

    it("deals the batches of a batch sampler whole", function()
      local options = { batch_sampler = { { 1, 2, 3 }, { 4 }, { 5, 6 } } }
      assert.same({ "0,1,2|3", "4,5|-" }, table_of(loader(6, options), 2))
      assert.same({ "0,1,2", "3", "4,5" }, table_of(loader(6, options), 1))
    end)

    it("cuts the stream of a sampler", function()
      local options = { batch_size = 1, sampler = { 6, 5, 4, 3, 1 } }
      assert.same({ "5|4", "3|2", "0|-" }, table_of(loader(6, options), 2))
    end)

    it("begins at any batch", function()
      assert.same({ "4|5", "6|-" }, table_of(loader(7), 2, "train", 2))
      local options = { batch_sampler = { { 1, 2 }, { 3 }, { 4, 5, 6 }, { 7 } } }
      assert.same({ "3,4,5|6" }, table_of(loader(7, options), 2, "train", 1))
    end)

    it("says how many ranks hold samples of a batch", function()
      local _, active = read(loader(8, { batch_size = 2 })(), 0, 3)
      assert.same({ 0, 2 }, active)
      _, active = read(loader(8, { batch_size = 2 })(), 2, 3, "train", 1)
      assert.same({ 2 }, active)
      _, active = read(loader(8, { batch_size = 2 })(), 2, 3, "val")
      assert.same({ 0, 0 }, active)
      _, active = read(loader(5, { batch_sampler = { { 1 }, { 2 }, { 3, 4, 5 } } })(), 1, 2)
      assert.same({ 0, 1 }, active)
    end)

    it("resumes at a count of samples on another number of ranks, each sample once", function()
      local options = { batch_size = 1, shuffle = true, seed = 4 }
      local whole = {}
      for batch in loader(23, options)():batches() do whole[#whole + 1] = batch[1]:tolist()[1] end
      local seen, state = {}, nil
      -- Some steps on 4 ranks (8 samples), on 2 (6 samples), on 3 (9 samples).
      for _, part in ipairs { { 4, 2 }, { 2, 3 }, { 3, 9 } } do
        local ranks, saved = {}, nil
        for rank = 0, part[1] - 1 do
          local one = loader(23, options)()
          one:shard(rank, part[1])
          if state then one:load_state_dict(state) end
          ranks[rank + 1] = {}
          for batch in one:batches() do
            table.insert(ranks[rank + 1], batch and batch[1]:tolist() or {})
            saved = one:state_dict()
            if #ranks[rank + 1] == part[2] then break end
          end
        end
        for k = 1, #ranks[1] do
          for _, of_rank in ipairs(ranks) do
            for _, value in ipairs(of_rank[k]) do seen[#seen + 1] = value end
          end
        end
        state = saved
      end
      assert.same(whole, seen)
      assert.equal(23, state.position)
    end)

    it("counts the batches before a state as it is cut now", function()
      local one = loader(20)()
      assert.equal(8, one:batches_before { position = 8 })
      one:shard(0, 4)
      assert.equal(2, one:batches_before { position = 8 })
      one:shard(0, 3)
      assert.equal(3, one:batches_before { position = 8 }) -- 4 of the 7 batches are left
    end)
  end)
end

describe("data.DataLoader with a batch sampler", function()
  it("asks a function once an epoch, an object for its batches", function()
    local loader = data.DataLoader(list(4), {
      batch_sampler = function(epoch) return { { epoch + 1 }, { epoch + 2 } } end,
    })
    assert.equal(2, #loader)
    assert.same({ { 0 }, { 1 } }, (read(loader, 0, 1)))
    assert.same({ { 1 }, { 2 } }, (read(loader, 0, 1)))
    local sampler = { epochs = {} }
    function sampler:set_epoch(epoch) self.epochs[#self.epochs + 1] = epoch end
    function sampler:batches(epoch)
      local k = 0
      return function()
        k = k + 1
        if k <= 2 then return { k, epoch + 3 } end
      end
    end
    loader = data.DataLoader(list(4), { batch_sampler = sampler })
    assert.same({ { 0, 2 }, { 1, 2 } }, (read(loader, 0, 1)))
    assert.same({ { 0, 3 }, { 1, 3 } }, (read(loader, 0, 1)))
    assert.same({ 0, 1 }, sampler.epochs)
  end)

  it("refuses empty batches, positions that are not there, and other options", function()
    local function batches(given) return data.DataLoader(list(3), { batch_sampler = given }) end
    has(error_of(read, batches { { 1 }, {} }, 0, 1),
      "batch 2 of the batch sampler must be a list of positions: got none")
    has(error_of(read, batches { { 1 }, { 4 } }, 0, 1), "must be a position in 1..3, got 4")
    has(error_of(data.DataLoader, list(3), { batch_sampler = { { 1 } }, batch_size = 2 }),
      "batch_size and batch_sampler exclude each other")
    has(error_of(data.DataLoader, list(3), { global_batch_size = 2, batch_size = 2 }),
      "batch_size and global_batch_size exclude each other")
    has(error_of(data.DataLoader, list(3), { tail = "wrap", drop_last = true }),
      "tail = 'wrap' and drop_last exclude each other")
  end)
end)

describe("data.DataLoader:shard", function()
  it("refuses a global batch of less than a sample a rank", function()
    local loader = data.DataLoader(list(9), { global_batch_size = 3 })
    has(error_of(loader.shard, loader, 0, 4),
      "global_batch_size = 3 is less than a sample for each of 4 ranks")
  end)

  it("leaves a sampler alone that says to be sharded", function()
    local sampler = { sharded = true }
    function sampler:indices() return { 2, 4, 6 } end
    local loader = data.DataLoader(list(6), { batch_size = 2, sampler = sampler })
    assert.same({ { 1, 3 }, { 5 } }, (read(loader, 1, 2)))
    assert.is_true(loader:comes_sharded())
  end)

  it("refuses a data set that makes another one in place of sharding itself", function()
    local Made = lt.data.IterableDataset:extend("Made")
    function Made:shard() return Made() end
    local ok, message = pcall(function() lt.data.DataLoader(Made()):shard(0, 2) end)
    assert.is_false(ok)
    assert.matches("shard%(rank, world%) of the data set made another one: it must change what",
      message)
  end)

  it("asks an iterable data set to shard itself, and is false where it cannot", function()
    local Count = data.IterableDataset:extend("Count")
    function Count:iterate()
      local i = (self.rank or 0) - (self.world or 1)
      return function()
        i = i + (self.world or 1)
        if i < 5 then return { i } end
      end
    end
    assert.is_false(data.DataLoader(Count()):shard(1, 2))
    function Count:shard(rank, world) self.rank, self.world = rank, world end
    local loader = data.DataLoader(Count(), { global_batch_size = 4 })
    assert.same({ { 1, 3 } }, (read(loader, 1, 2)))
    assert.same({ { 0, 2 }, { 4 } }, (read(loader, 0, 2)))
    loader:shard()
    assert.same({ { 0, 1, 2, 3 }, { 4 } }, (read(loader)))
  end)

  it("gives a sample the same random numbers on any number of ranks", function()
    local Noisy = data.Dataset:extend("Noisy")
    function Noisy:__len() return 13 end
    function Noisy:get(i) return { i, lt.randn(1):item() + math.random() } end
    local function noise(world)
      local of = {}
      for rank = 0, world - 1 do
        local loader = data.DataLoader(Noisy(), { batch_size = 2, shuffle = true, seed = 3 })
        loader:shard(rank, world)
        for batch in loader:batches() do
          for k = 1, batch and batch[1]:numel() or 0 do
            of[batch[1][k]:item()] = batch[2][k]:item()
          end
        end
      end
      return of
    end
    assert.same(noise(1), noise(2))
    assert.same(noise(1), noise(4))
  end)
end)
