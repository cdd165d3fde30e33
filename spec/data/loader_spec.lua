-- spec/data/loader_spec.lua: batches, their order, resuming in the middle, what is refused.
-- tags: threads

local lt = require "ltrain"
local error_of = require "spec.error_of"
local has = require "spec.has"
local numbers = require "spec.data.numbers"

local data <const> = lt.data
local list <const>, tensors <const> = numbers.list, numbers.tensors

local function values(loader, position)
  local all = {}
  for batch, i in loader:batches(position) do
    for _, value in ipairs(batch[1]:tolist()) do all[#all + 1] = value end
    all.last = i
  end
  return all
end

local function sizes(loader)
  local all = {}
  for batch in loader:batches() do all[#all + 1] = batch[1].shape[1] end
  return all
end

-- Both ways of reading must behave alike.
for name, make in pairs { ["gathered in C"] = tensors, ["read by Lua"] = list } do
  describe("data.DataLoader, samples " .. name, function()
    it("gives batches in order, and a short last one", function()
      local loader = data.DataLoader(make(7), { batch_size = 3 })
      assert.same({ 3, 3, 1 }, sizes(loader))
      assert.same({ 0, 1, 2, 3, 4, 5, 6, last = 2 }, values(loader))
      assert.equal(3, #loader)
      assert.equal(3, loader.batch_size)
    end)

    it("has one sample in a batch by default", function()
      assert.same({ 1, 1 }, sizes(data.DataLoader(make(2))))
    end)

    it("leaves a short last batch out with drop_last", function()
      local loader = data.DataLoader(make(7), { batch_size = 3, drop_last = true })
      assert.same({ 3, 3 }, sizes(loader))
      assert.equal(2, loader:length())
    end)

    it("shuffles: each sample once, another order in each epoch", function()
      local loader = data.DataLoader(make(50), { batch_size = 8, shuffle = true, seed = 5 })
      local one, two = values(loader), values(loader)
      assert.is_not.same(one, two)
      table.sort(one)
      for i = 1, 50 do assert.equal(i - 1, one[i]) end
    end)

    it("orders by (seed, epoch) alone", function()
      local function order(seed, epoch)
        local loader = data.DataLoader(make(50), { batch_size = 8, shuffle = true, seed = seed })
        loader:set_epoch(epoch)
        return values(loader)
      end
      assert.same(order(5, 2), order(5, 2))
      assert.is_not.same(order(5, 2), order(6, 2))
      local loader = data.DataLoader(make(50), { batch_size = 8, shuffle = true, seed = 5 })
      values(loader)
      values(loader)
      assert.same(order(5, 2), values(loader))
    end)

    it("takes the seed of lt.seed when it is given none", function()
      lt.seed(11)
      local one = values(data.DataLoader(make(50), { shuffle = true }))
      lt.seed(11)
      assert.same(one, values(data.DataLoader(make(50), { shuffle = true })))
      assert.same(one, values(data.DataLoader(make(50), { shuffle = true, seed = 11 })))
    end)

    it("begins at any batch", function()
      local loader = data.DataLoader(make(50), { batch_size = 8, shuffle = true, seed = 5 })
      local whole = values(loader)
      loader:set_epoch(0)
      local rest = values(loader, 3)
      assert.equal(26, #rest)
      assert.equal(6, rest.last)
      for i = 1, 26 do assert.equal(whole[24 + i], rest[i]) end
    end)

    it("resumes from its saved state in a new loader", function()
      local options = { batch_size = 8, shuffle = true, seed = 5 }
      local loader = data.DataLoader(make(50), options)
      values(loader)
      local whole = values(loader)
      loader:set_epoch(1)
      for _, i in loader:batches() do
        if i == 2 then break end
      end
      local state = loader:state_dict()
      assert.equal(1, state.epoch)
      assert.equal(24, state.position)
      options.seed = nil
      local other = data.DataLoader(make(50), options)
      other:load_state_dict(state)
      assert.same(state, other:state_dict())
      local rest = values(other)
      for i = 1, 26 do assert.equal(whole[24 + i], rest[i]) end
      assert.same({ epoch = 2, position = 0, seed = 5 }, other:state_dict())
    end)

    it("starts a new epoch after a loop that was left early", function()
      local loader = data.DataLoader(make(50), { batch_size = 8, shuffle = true, seed = 5 })
      for _, i in loader:batches() do
        if i == 0 then break end
      end
      local second = values(loader)
      assert.equal(50, #second)
      loader:set_epoch(1)
      assert.same(second, values(loader))
    end)

    it("follows a sampler of the user's own", function()
      local loader = data.DataLoader(make(5), { batch_size = 2, sampler = { 5, 5, 1 } })
      assert.same({ 4, 4, 0, last = 1 }, values(loader))
      assert.equal(2, #loader)
      loader = data.DataLoader(make(5), { sampler = function(epoch) return { epoch + 1 } end })
      assert.equal(0, values(loader)[1])
      assert.equal(1, values(loader)[1])
    end)

    it("keys what a sampler draws by seed and epoch", function()
      local function orders(options)
        lt.seed(3)
        local loader = data.DataLoader(make(40), options)
        local first = values(loader)
        local outside = lt.rand(1):item()
        loader:set_epoch(0)
        return first, values(loader), values(loader), outside
      end
      local function draw() return (lt.randperm(40) + 1):tolist() end
      local function batches()
        return coroutine.wrap(function() -- drawn as it is read
          for _ = 1, 10 do coroutine.yield { math.random(40), math.random(40) } end
        end)
      end
      for _, options in ipairs { { sampler = draw }, { batch_sampler = batches } } do
        local first, again, next_epoch, outside = orders(options)
        assert.same(first, again)
        assert.not_same(first, next_epoch)
        lt.seed(3)
        assert.equal(outside, lt.rand(1):item()) -- draws of the script are not shifted
      end
    end)

    it("stops shuffling without the option", function()
      local loader = data.DataLoader(make(9), { batch_size = 9, shuffle = true })
      loader.shuffle = false
      assert.same({ 0, 1, 2, 3, 4, 5, 6, 7, 8, last = 0 }, values(loader))
    end)

    it("raises on a sampler's position that is not there", function()
      local loader = data.DataLoader(make(5), { sampler = { 1, 6 } })
      has(error_of(values, loader), "sampler: entry 2 must be a position in 1..5, got 6")
    end)

    it("gives samples of subsets", function()
      local parts = data.random_split(make(20), { 15, 5 }, { seed = 1 })
      local sub = data.Subset(parts[1], { 3, 2, 1 })
      local expected = {}
      for i = 3, 1, -1 do
        local value = parts[1]:get(i)[1]
        expected[#expected + 1] = math.type(value) and value or value:item()
      end
      expected.last = 0
      assert.same(expected, values(data.DataLoader(sub, { batch_size = 3 })))
    end)
  end)
end

describe("data.DataLoader", function()
  it("gives batches the form of a TensorDataset's names", function()
    local ds = data.TensorDataset { x = lt.arange(4), y = lt.ones(4, 2) }
    for batch in data.DataLoader(ds, { batch_size = 4 }):batches() do
      assert.same({ 0, 1, 2, 3 }, batch.x:tolist())
      assert.same({ 4, 2 }, batch.y.shape)
    end
  end)

  it("scales u8 columns while gathering, as get does", function()
    local ds = data.digits { n = 10 }
    for batch in data.DataLoader(ds, { batch_size = 10 }):batches() do
      assert.equal("f32", batch[1].dtype)
      for i = 1, 10 do
        assert.equal(0, (batch[1][i] - ds:get(i)[1]):abs():max():item())
        assert.equal(ds:get(i)[2]:item(), batch[2][i]:item())
      end
    end
  end)

  it("gives the same batches with and without its thread", function()
    local ds = tensors(100)
    local function run(prefetch)
      return values(data.DataLoader(ds,
        { batch_size = 7, shuffle = true, seed = 2, prefetch = prefetch }))
    end
    assert.same(run(0), run(1))
    assert.same(run(0), run(16))
  end)

  it("may be left in the middle, by break and by an error, a hundred times", function()
    local loader = data.DataLoader(tensors(1000), { batch_size = 2 })
    for round = 1, 50 do
      for _, i in loader:batches() do
        if i == round % 5 then break end
      end
      local ok = pcall(function()
        for _ in loader:batches() do error("x") end
      end)
      assert.is_false(ok)
    end
  end)

  it("keeps batches alive after the loop", function()
    local kept = {}
    for batch in data.DataLoader(tensors(20), { batch_size = 4 }):batches() do
      kept[#kept + 1] = batch[1]
    end
    collectgarbage()
    assert.same({ 16, 17, 18, 19 }, kept[5]:tolist())
    assert.same({ 0, 1, 2, 3 }, kept[1]:tolist())
  end)

  it("uses a collate function, which sees samples and positions", function()
    local loader = data.DataLoader(tensors(3), { batch_size = 2,
      collate = function(samples, positions) return { #samples, positions[1] } end })
    local seen = {}
    for batch in loader:batches() do seen[#seen + 1] = batch end
    assert.same({ { 2, 1 }, { 1, 3 } }, seen)
    loader = data.DataLoader(tensors(3), 3, { collate_fn = function(samples) return #samples end })
    assert.equal(3, loader:batches()())
  end)

  it("keys random numbers by seed, epoch and sample, whatever the batch size", function()
    local Noisy = data.Dataset:extend("Noisy")
    function Noisy:__len() return 12 end
    function Noisy:get(i) return { i, lt.randn(1):item() + math.random() } end
    local function noise(batch_size, epoch)
      local by_sample = {}
      local loader = data.DataLoader(Noisy(), { batch_size = batch_size, shuffle = true, seed = 3 })
      loader:set_epoch(epoch)
      for batch in loader:batches() do
        for k = 1, batch[1].shape[1] do
          by_sample[batch[1][k]:item()] = batch[2][k]:item()
        end
      end
      return by_sample
    end
    assert.same(noise(1, 0), noise(5, 0))
    assert.is_not.same(noise(1, 0), noise(1, 1))
    local once = noise(12, 0)
    assert.is_not.equal(once[1], once[2])
  end)

  it("leaves the draws around it as they were", function()
    local Drawing = data.Dataset:extend("Drawing")
    function Drawing:__len() return 4 end
    function Drawing:get(i) return { i + 0 * math.random(9) + 0 * lt.rand(1):item() } end
    local function draw(with_loader)
      lt.seed(5)
      local first = lt.rand(1):item() + math.random()
      if with_loader then values(data.DataLoader(Drawing())) end
      return { first, lt.rand(1):item(), math.random() }
    end
    assert.same(draw(false), draw(true))
  end)

  it("takes samples of several values", function()
    local Pairs = data.Dataset:extend("Pairs")
    function Pairs:__len() return 2 end
    function Pairs:get(i) return i, lt.ones(3) * i end
    for batch in data.DataLoader(Pairs(), { batch_size = 2 }):batches() do
      assert.same({ 1, 2 }, batch[1]:tolist())
      assert.same({ { 1, 1, 1 }, { 2, 2, 2 } }, batch[2]:tolist())
    end
  end)

  it("yields from get to whoever drives the loop", function()
    local Slow = data.Dataset:extend("Slow")
    function Slow:__len() return 2 end
    function Slow:get(i)
      coroutine.yield(i)
      return i
    end
    local seen = {}
    local run = coroutine.wrap(function()
      for batch in data.DataLoader(Slow(), { batch_size = 2 }):batches() do
        seen[1] = batch:tolist()
      end
      return "end"
    end)
    assert.equal(1, run())
    assert.equal(2, run())
    assert.equal("end", run())
    assert.same({ 1, 2 }, seen[1])
  end)

  it("raises on an empty data set and on what is none", function()
    has(error_of(data.DataLoader, {}), "DataLoader: the data set is empty")
    has(error_of(data.DataLoader, tensors(3), "5"), "batch_size must be an integer: got '5'")
    has(error_of(data.DataLoader, lt.ones(3)), "dataset must have get(i) and a length")
    has(error_of(data.DataLoader, nil), "got nil")
  end)

  it("refuses options that are unknown, wrong or exclude each other", function()
    local ds = tensors(3)
    has(error_of(data.DataLoader, ds, { batchsize = 3 }), "did you mean 'batch_size'?")
    has(error_of(data.DataLoader, ds, { batch_size = 0 }), "batch_size must be at least 1: got 0")
    has(error_of(data.DataLoader, ds, { shuffle = true, sampler = { 1 } }), "exclude each other")
  end)

  it("raises when a sample is nil", function()
    local Nothing = data.Dataset:extend("Nothing")
    function Nothing:__len() return 2 end
    function Nothing:get() end
    has(error_of(values, data.DataLoader(Nothing())), "get(1) returned nothing")
  end)
end)

describe("data.DataLoader over samples that come one after the other", function()
  local Count = data.IterableDataset:extend("Count")
  function Count:init(n) self.n, self.reads = n, 0 end
  function Count:iterate()
    local i = 0
    return function()
      i = i + 1
      self.reads = self.reads + 1
      if i <= self.n then return { i - 1 } end
    end
  end

  it("batches them", function()
    local loader = data.DataLoader(Count(7), { batch_size = 3 })
    assert.same({ 0, 1, 2, 3, 4, 5, 6, last = 2 }, values(loader))
    assert.same({ 3, 3, 1 }, sizes(loader))
    assert.is_nil(loader:length())
    has(error_of(function() return #loader end), "the length of an iterable data set is unknown")
  end)

  it("leaves a short last batch out with drop_last", function()
    assert.same({ 3, 3 }, sizes(data.DataLoader(Count(7), { batch_size = 3, drop_last = true })))
  end)

  it("replays and drops what was consumed before", function()
    local counted = Count(10)
    assert.same({ 6, 7, 8, 9, last = 3 },
      values(data.DataLoader(counted, { batch_size = 3 }), 2))
    assert.equal(11, counted.reads)
    local loader = data.DataLoader(Count(10), { batch_size = 3 })
    for _, i in loader:batches() do
      if i == 1 then break end
    end
    local other = data.DataLoader(Count(10), { batch_size = 3 })
    other:load_state_dict(loader:state_dict())
    assert.same({ 6, 7, 8, 9, last = 3 }, values(other))
  end)

  it("asks a data set that keeps its own state", function()
    local Stated = Count:extend("Stated")
    function Stated:init(n) self.n, self.at, self.reads = n, 0, 0 end
    function Stated:iterate()
      return function()
        self.reads = self.reads + 1
        if self.at >= self.n then return nil end
        self.at = self.at + 1
        return { self.at - 1 }
      end
    end
    function Stated:state_dict() return { at = self.at } end
    function Stated:load_state_dict(state) self.at = state.at end
    local loader = data.DataLoader(Stated(10), { batch_size = 3 })
    for _, i in loader:batches() do
      if i == 1 then break end
    end
    local fresh = Stated(10)
    local other = data.DataLoader(fresh, { batch_size = 3 })
    other:load_state_dict(loader:state_dict())
    assert.same({ 6, 7, 8, 9, last = 3 }, values(other))
    assert.equal(5, fresh.reads)
  end)

  it("takes a function that begins a pass", function()
    local loader = data.DataLoader(function(epoch)
      return ipairs { epoch + 10, epoch + 20 }
    end, { batch_size = 2 })
    local seen = {}
    for _ = 1, 2 do
      for batch in loader:batches() do seen[#seen + 1] = batch[2]:tolist() end
    end
    assert.same({ { 10, 20 }, { 11, 21 } }, seen)
  end)

  it("refuses shuffling, and a function that gives no iterator", function()
    has(error_of(data.DataLoader, Count(3), { shuffle = true }), "shuffle needs a data set with")
    local loader = data.DataLoader(function() return 3 end)
    has(error_of(values, loader), "the data set must return an iterator: got 3")
    has(error_of(values, data.DataLoader(data.IterableDataset:extend("Bare")())),
      "Bare: define iterate()")
  end)
end)

describe("data.collate", function()
  it("stacks tensors, makes tensors of numbers and lists of strings, by field", function()
    local batch = data.collate {
      { x = lt.ones(2), n = 1, f = 1.5, ok = true, name = "a", deep = { 1 } },
      { x = lt.zeros(2), n = 2, f = 2, ok = false, name = "b", deep = { 2 } },
    }
    assert.same({ { 1, 1 }, { 0, 0 } }, batch.x:tolist())
    assert.equal("i64", batch.n.dtype)
    assert.equal("f32", batch.f.dtype)
    assert.equal("bool", batch.ok.dtype)
    assert.same({ "a", "b" }, batch.name)
    assert.same({ 1, 2 }, batch.deep[1]:tolist())
  end)

  it("names the samples that differ and both shapes", function()
    local samples = {}
    for i = 1, 6 do samples[i] = { image = lt.ones(3, i == 5 and 30 or 28) } end
    local loader = data.DataLoader(samples, { batch_size = 3 })
    has(error_of(function()
      for _ in loader:batches() do end -- luacheck: ignore 542
    end), "collate: samples differ in shape at 'image': sample 4 has f32 [3, 28], "
      .. "sample 5 has f32 [3, 30]")
  end)

  it("names kinds, dtypes and fields that differ", function()
    has(error_of(data.collate, { 1, "a" }), "differ in kind: sample 1 has 1, sample 2 has 'a'")
    has(error_of(data.collate, { lt.ones(2), lt.ones(2):to("i64") }),
      "differ in dtype: sample 1 has f32 [2], sample 2 has i64 [2]")
    has(error_of(data.collate, { { a = 1 }, { b = 1 } }), "differ in fields")
    has(error_of(data.collate, { { a = 1 }, { a = 1, b = 1 } }), "differ in fields")
  end)

  it("raises on what it cannot batch", function()
    has(error_of(data.collate, { print }), "no batch can be made of a function")
    has(error_of(data.collate, { { f = setmetatable({}, {}) } }), "at 'f'")
  end)
end)

describe("lt.DataModule", function()
  it("makes loaders of ready data sets", function()
    local module = lt.DataModule.from_datasets { train = tensors(6), val = list(4), batch_size = 2 }
    assert.equal(3, #module:train_dataloader())
    assert.is_true(module:train_dataloader().shuffle)
    assert.is_false(module:val_dataloader().shuffle)
    assert.is_nil(module.test_dataloader)
    module = lt.DataModule.from_datasets { train = tensors(6), global_batch_size = 4 }
    assert.equal(4, module:train_dataloader():global_batch())
  end)

  it("has hooks that do nothing until they are defined", function()
    local Mine = lt.DataModule:extend("Mine")
    function Mine:setup(stage) self.stage = stage end
    local module = Mine()
    module:prepare_data()
    module:setup("fit")
    module:teardown("fit")
    assert.equal("fit", module.stage)
  end)
end)

describe("lt.DataModule:save_hyperparameters", function()
  local tiny = require "spec.trainer.tiny"
  local Data = lt.DataModule:extend "Data"
  function Data:init(o)
    self:save_hyperparameters(o, { ignore = { "secret" } })
    self.size, self.seen = o.size, 0
  end
  function Data:train_dataloader() return tiny.same(self.size) end
  function Data:state_dict() return { seen = 7 } end
  function Data:load_state_dict(state) self.seen = state.seen end

  it("makes load_from_checkpoint give init what the checkpoint holds", function()
    local path = tiny.folder() .. ".ckpt"
    local trainer = tiny.trainer()
    trainer:fit(tiny.Line(), Data { size = 2, secret = print, kind = { a = 1 } })
    trainer:save_checkpoint(path)
    local again = Data:load_from_checkpoint(path)
    assert.same({ size = 2, kind = { a = 1 } }, again.hparams)
    assert.same({ 2, 7 }, { again.size, again.seen })
    assert.equal(3, Data:load_from_checkpoint(path, { size = 3 }).hparams.size)
    assert.matches("load_from_checkpoint: call it on the class: Data:load_from_checkpoint%(file%)",
      error_of(again.load_from_checkpoint, again, path))
    assert.matches("call it with a colon, Data:load_from_checkpoint%(file%): got '.*' instead",
      error_of(Data.load_from_checkpoint, path))
    os.remove(path)
    local none, why = Data:load_from_checkpoint(path)
    assert.is_nil(none)
    assert.matches("No such file", why)
  end)

  -- The hyper-parameters that a logger is given.
  local function logged(of_module, of_data)
    local rows = {}
    local logger = lt.Logger()
    function logger.log_hyperparams(_, params) rows = params end
    local net = tiny.Line()
    net:save_hyperparameters(of_module)
    tiny.trainer { logger = logger }:fit(net, Data(of_data))
    return rows
  end

  it("logs them with the module's, which must not differ", function()
    assert.same({ lr = 0.5, size = 1, kind = { 1 } },
      logged({ lr = 0.5, kind = { 1 } }, { size = 1, kind = { 1 } }))
    assert.matches("fit: the hyper%-parameter kind of the module and of the data module differ: ",
      tiny.error_of(logged, { kind = { 1 } }, { size = 1, kind = { 1, 2 } }))
  end)
end)

describe("data.DataLoader, resumed with a data set of another size", function()
  local console = require "ltrain.core.console"
  local say, lines = console.say, nil
  before_each(function()
    lines = {}
    console.say = function(text) lines[#lines + 1] = text end
  end)
  after_each(function() console.say = say end)

  -- Resumes with `n` samples after `batches` of 8 samples in twos.
  local function resume(batches, n)
    local loader = data.DataLoader(tensors(8), { batch_size = 2 })
    local next_batch = loader:batches()
    for _ = 1, batches do next_batch() end
    local other = data.DataLoader(tensors(n), { batch_size = 2 })
    other:load_state_dict(loader:state_dict())
    return values(other)
  end

  it("is reported with both sizes in mid-epoch", function()
    assert.same({ 4, 5, last = 2 }, resume(2, 6))
    assert.same({ "warning: DataLoader: the epoch that is resumed after sample 4 had a data set "
      .. "of 8 "
      .. "samples, now it has 6: other samples follow than in the run that saved it" }, lines)
  end)

  it("is not reported with the same size, nor between epochs", function()
    resume(2, 8)
    resume(5, 6)
    assert.same({}, lines)
  end)
end)
