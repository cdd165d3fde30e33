-- spec/data/combined_spec.lua: several loaders as one: its modes, how it resumes; batch samplers.

local lt = require "ltrain"
local error_of = require "spec.error_of"
local has = require "spec.has"

local data <const> = lt.data

local function loader(n, size, options)
  local o = options or {}
  o.batch_size = size
  return data.DataLoader(data.TensorDataset(lt.arange(n)), o)
end

local function row(batch) return batch and batch[1]:tolist() end

-- What a loader of a and b gives: a list of { index, a's rows, b's rows }.
local function rows_of(both, position)
  local list = {}
  for batch, i in both:batches(position) do list[#list + 1] = { i, row(batch.a), row(batch.b) } end
  return list
end

local function combined(mode, options)
  return data.CombinedLoader({ a = loader(6, 2), b = loader(3, 2, options) }, { mode = mode })
end

-- A function that gives numbers from `first` on, n of them.
local function range(n, first)
  return function()
    local i = (first or 0) - 1
    return function()
      i = i + 1
      if i < (first or 0) + n then return lt.tensor { i } end
    end
  end
end

local MODES <const> = { "min_size", "max_size", "max_size_cycle", "sequential" }

-- Numbers in place of the tensors of a batch, nested as they are.
local function numbers_of(batch)
  if type(batch) == "table" then
    local t = {}
    for key, part in pairs(batch) do t[key] = numbers_of(part) end
    return t
  end
  return batch:size(1) == 1 and batch:item() or batch:tolist()
end

local function all_of(both, position)
  local list = {}
  for batch, i in both:batches(position) do
    list[#list + 1] = { i, numbers_of(batch) }
  end
  return list
end

describe("data.CombinedLoader of iterables", function()
  -- The lists that Lightning 2.6's CombinedLoader gives of range(3), range(10, 12).
  local EXPECTED <const> = {
    min_size = { { 0, { a = 0, b = 10 } }, { 1, { a = 1, b = 11 } } },
    max_size = { { 0, { a = 0, b = 10 } }, { 1, { a = 1, b = 11 } }, { 2, { a = 2 } } },
    max_size_cycle = { { 0, { a = 0, b = 10 } }, { 1, { a = 1, b = 11 } },
      { 2, { a = 2, b = 10 } } },
    sequential = { { 0, 0 }, { 1, 1 }, { 2, 2 }, { 3, 10 }, { 4, 11 } },
  }

  local function make(mode)
    return data.CombinedLoader({ a = range(3), b = range(2, 10) }, mode)
  end

  it("reads them in all modes, without a length", function()
    for _, mode in ipairs(MODES) do
      local both = make(mode)
      assert.same(EXPECTED[mode], all_of(both), mode)
      assert.same(EXPECTED[mode], all_of(both), mode .. ", again")
      assert.is_nil(both:length())
    end
  end)

  it("cycles through those that have ended until all have", function()
    local both = data.CombinedLoader({ a = range(1), b = range(5), c = loader(3, 1) },
      "max_size_cycle")
    local seen = {}
    for batch in both:batches() do
      seen[#seen + 1] = { batch.a:item(), batch.b:item(), batch.c[1]:item() }
    end
    assert.same({ { 0, 0, 0 }, { 0, 1, 1 }, { 0, 2, 2 }, { 0, 3, 0 }, { 0, 4, 1 } }, seen)
  end)

  it("resumes at any batch, by number and by state", function()
    for _, mode in ipairs(MODES) do
      local whole = all_of(make(mode))
      for at = 0, #whole do
        local rest = table.move(whole, at + 1, #whole, 1, {})
        assert.same(rest, all_of(make(mode), at), mode .. " at " .. at)
        local both, other = make(mode), make(mode)
        local step, _, _, close = both:batches()
        for _ = 1, at do step() end
        other:load_state_dict(both:state_dict())
        local _ <close> = close
        assert.same(rest, all_of(other), mode .. " from the state at " .. at)
      end
    end
  end)

  it("knows how many there are at most where the shortest ends it", function()
    local both = data.CombinedLoader({ a = loader(6, 2), b = range(99) })
    assert.same({ 3, true }, { both:length() })
    assert.equal(3, #all_of(both))
    assert.equal(2, #all_of(data.CombinedLoader { a = loader(6, 2), b = range(2) }))
  end)

  it("reads nested tables of loaders, with workers too", function()
    local set = data.IterableDataset:extend "Few"
    function set.iterate() return range(4)() end
    local both = data.CombinedLoader({
      { x = range(3), y = data.DataLoader(set(), { batch_size = 2, num_workers = 2 }) },
      { z = loader(4, 4) },
    }, "max_size")
    local seen = {}
    for batch, i in both:batches() do
      seen[i + 1] = { batch[1].x:item(), batch[1].y and numbers_of(batch[1].y),
        batch[2].z and row(batch[2].z) }
    end
    assert.same({ { 0, { { 0 }, { 1 } }, { 0, 1, 2, 3 } }, { 1, { { 2 }, { 3 } } }, { 2 } }, seen)
  end)

  it("limits each loader, and says whose a batch is", function()
    local both, seen = make "sequential", {}
    for batch, i, k in both:batches(nil, { 2, 1 }) do seen[#seen + 1] = { batch:item(), i, k } end
    assert.same({ { 0, 0, 1 }, { 1, 1, 1 }, { 10, 2, 2 } }, seen)
  end)
end)

describe("data.CombinedLoader", function()
  local first <const>, second <const> = { 0, { 0, 1 }, { 0, 1 } }, { 1, { 2, 3 }, { 2 } }

  it("ends with the shortest, the longest, or begins the others anew", function()
    assert.same({ first, second }, rows_of(combined()))
    assert.same({ first, second, { 2, { 4, 5 } } }, rows_of(combined "max_size"))
    assert.same({ first, second, { 2, { 4, 5 }, { 0, 1 } } }, rows_of(combined "max_size_cycle"))
    assert.equal(2, #combined())
    assert.equal(3, #combined "max_size")
    assert.equal(3, #combined "max_size_cycle")
  end)

  it("gives one loader's batches after another's", function()
    local both, list = combined "sequential", {}
    for batch, i in both:batches() do list[i + 1] = row(batch) end
    assert.same({ { 0, 1 }, { 2, 3 }, { 4, 5 }, { 0, 1 }, { 2 } }, list)
    assert.equal(5, #both)
  end)

  it("takes loaders by position", function()
    local pair = data.CombinedLoader { loader(2, 2), loader(2, 1) }
    for batch in pair:batches() do
      assert.same({ 0, 1 }, row(batch[1]))
      assert.same({ 0 }, row(batch[2]))
    end
  end)

  it("shuffles anew in each round and epoch", function()
    local both = data.CombinedLoader({ a = loader(64, 4), b = loader(32, 4,
      { shuffle = true, seed = 1 }) }, { mode = "max_size_cycle" })
    local function epoch()
      local rounds = { {}, {} }
      for batch, i in both:batches() do
        local round = rounds[i // 8 + 1]
        table.move(row(batch.b), 1, 4, #round + 1, round)
      end
      return rounds
    end
    local one, two = epoch(), epoch()
    assert.not_same(one[1], one[2])
    assert.not_same(one[1], two[1])
    for _, round in ipairs { one[1], one[2], two[1] } do
      table.sort(round)
      for i = 1, 32 do assert.equal(i - 1, round[i]) end
    end
  end)

  it("resumes at any batch, in every mode", function()
    for _, mode in ipairs { "min_size", "max_size", "max_size_cycle", "sequential" } do
      local function make() return combined(mode, { shuffle = true, seed = 4 }) end
      local function all(both, position)
        local list = {}
        for batch, i in both:batches(position) do list[#list + 1] = { i, lt.hash(batch) } end
        return list
      end
      local whole = all(make())
      for at = 0, #whole do
        assert.same(table.move(whole, at + 1, #whole, 1, {}), all(make(), at))
        if at > 0 then
          local both = make()
          for _, i in both:batches() do
            if i == at - 1 then break end
          end
          local other = make()
          other:load_state_dict(both:state_dict())
          assert.same(table.move(whole, at + 1, #whole, 1, {}), all(other))
        end
      end
    end
  end)

  it("gives each rank its part of all", function()
    local seen = {}
    for rank = 0, 1 do
      local both = combined()
      assert.is_true(both:shard(rank, 2))
      for batch, i in both:batches() do
        seen[#seen + 1] = { rank, i, row(batch.a), row(batch.b) }
        assert.is_nil(both:active_ranks(0))
      end
    end
    assert.same({ { 0, 0, { 0, 1 }, { 0, 1 } }, { 1, 0, { 2, 3 }, { 2 } } }, seen)
  end)

  it("is a loader of a fit, resumed in the middle too", function()
    local function fit(max_steps, path)
      lt.seed(2)
      local net = lt.Module()
      net.fc = lt.nn.Linear(1, 1)
      function net:training_step(batch)
        local function out(part) return self.fc(part[1]:float():view(-1, 1)):mean() end
        return out(batch.a) + out(batch.b) * out(batch.b)
      end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 1e-3 }) end
      local trainer = lt.Trainer { max_steps = max_steps, max_epochs = 3, logger = false,
        enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false }
      trainer:fit(net, combined("max_size_cycle", { shuffle = true, seed = 4 }),
        path and { ckpt_path = path } or nil)
      return net, trainer
    end
    local whole = fit(8)
    local part, trainer = fit(5)
    local path = os.tmpname() .. ".ckpt"
    trainer:save_checkpoint(path)
    assert.not_equal(lt.hash(whole:state_dict()), lt.hash(part:state_dict()))
    assert.equal(lt.hash(whole:state_dict()), lt.hash(fit(8, path):state_dict()))
    os.remove(path)
  end)

  it("refuses what is not a loader, and loaders without length", function()
    has(error_of(data.CombinedLoader, { a = 3 }),
      "CombinedLoader: a must be a loader, an IterableDataset, or a function")
    has(error_of(data.CombinedLoader, {}), "CombinedLoader: needs a table of loaders")
    local unknown = data.CombinedLoader({ a = loader(2, 1), b = range(3) }, "max_size")
    has(error_of(function() return #unknown end),
      "CombinedLoader: the length of some loaders is unknown")
    has(error_of(function()
      data.CombinedLoader { loader(2, 1) }:load_state_dict { epoch = 0, position = 1, loaders = {} }
    end), "CombinedLoader: the state is of 0 loaders, here are 1")
    has(error_of(data.CombinedLoader, { a = loader(2, 1) }, { mode = "min" }), "mode")
  end)
end)

describe("data.BatchSampler", function()
  it("gives the positions of a sampler in batches", function()
    assert.same({ { 5, 3 }, { 1 } }, data.BatchSampler({ 5, 3, 1 }, 2):batches(0))
    assert.same({ { 5, 3 } }, data.BatchSampler({ 5, 3, 1 }, 2, { drop_last = true }):batches(0))
    local by_epoch = data.BatchSampler(function(epoch) return { epoch + 1, 2 } end, 1)
    assert.same({ { 4 }, { 2 } }, by_epoch:batches(3))
  end)

  it("is a batch_sampler, which draws by seed and epoch", function()
    local set = data.TensorDataset(lt.arange(20))
    local function all()
      local sampler = data.BatchSampler(data.RandomSampler(set), 4)
      local list = {}
      for batch in data.DataLoader(set, { batch_sampler = sampler, seed = 3 }):batches() do
        list[#list + 1] = row(batch)
      end
      return list
    end
    assert.equal(5, #all())
    assert.same(all(), all())
  end)

  it("refuses what gives no positions", function()
    has(error_of(data.BatchSampler, 3, 2), "BatchSampler: sampler must be a list of positions")
    has(error_of(function() data.BatchSampler(function() end, 2):batches(0) end),
      "BatchSampler: the sampler must give a list of positions: got nil")
  end)
end)
