-- spec/trainer/combined_spec.lua: loops over several loaders read together or one after the other.
-- tags: sampled

local lt = require "ltrain"
local sample = require "spec.sample"
local support = require "spec.dist.support"
local tiny = require "spec.trainer.tiny"

local data <const> = lt.data

local function loader(n, size, options)
  local o = options or {}
  o.batch_size = size
  return data.DataLoader(data.TensorDataset(lt.arange(n):float()), o)
end

-- A function that gives n tensors, 100 and so on.
local function stream(n)
  return function()
    local i = 99
    return function()
      i = i + 1
      if i < 100 + n then return lt.tensor { i * 1.0 } end
    end
  end
end

-- A module that notes which batches each step has; with `validates` also those of validation.
local function noting(validates)
  local net = tiny.Line()
  net.seen = {}
  local function sums(batch)
    local list = {}
    for _, key in ipairs { "a", "b" } do
      local part = batch[key]
      if type(part) == "table" then part = part[1] end
      list[key] = part and part:sum():item()
    end
    return list
  end
  function net:training_step(batch, i)
    self.seen[#self.seen + 1] = { i, sums(batch) }
    return self.w:sum()
  end
  net.validation_step = validates and function(self, batch, i, k)
    self:log("val", self.w:sum():item(), { batch_size = 1 })
    self.seen[#self.seen + 1] = { i, self:predict_step(batch, i, k) }
  end or nil
  function net.predict_step(_, batch, _, k)
    local is_one = lt.is_tensor(batch) or batch[1]
    local sum = is_one and { (batch[1] or batch):sum():item() } or sums(batch)
    sum.k = k
    return sum
  end
  return net
end

local function fit(train, options, more)
  local net, trainer = noting(), tiny.trainer(options)
  trainer:fit(net, train, more)
  return net.seen, trainer
end

describe("fit", function()
  local cycled <const> = { { 0, { a = 1, b = 100 } }, { 1, { a = 5, b = 101 } },
    { 2, { a = 1, b = 102 } } }

  it("reads loaders by name together, the shorter ones again", function()
    assert.same(cycled, (fit { a = loader(4, 2), b = stream(3) }))
    assert.same(cycled, (fit { train = { a = loader(4, 2), b = stream(3) } }))
    local net = noting()
    function net.train_dataloader() return { a = loader(4, 2), b = stream(3) } end
    tiny.trainer():fit(net)
    assert.same(cycled, net.seen)
  end)

  it("ends with the first loader that ends, whether its length is known or not", function()
    local both = data.CombinedLoader({ a = loader(4, 2), b = stream(9) })
    local seen, trainer = fit(both)
    assert.same({ cycled[1], cycled[2] }, seen)
    assert.equal(2, trainer.num_training_batches)
    assert.equal(1, #fit(data.CombinedLoader { a = loader(4, 2), b = stream(1) }))
    assert.equal(1, #fit(both, { limit_train_batches = 0.5 }))
  end)

  it("limits batches, of each loader where one is read after the other", function()
    local together = { a = loader(4, 2), b = stream(3) }
    assert.equal(2, #fit(together, { limit_train_batches = 2 }))
    local list = data.CombinedLoader({ stream(3), stream(2), loader(6, 1) }, "sequential")
    local net, trainer = tiny.Line(), tiny.trainer { limit_train_batches = 2 }
    net.seen = {}
    function net:training_step(batch)
      table.insert(self.seen, (batch[1] or batch):sum():item())
      return self.w:sum()
    end
    trainer:fit(net, list)
    assert.same({ 100, 101, 100, 101, 0, 1 }, net.seen)
    assert.matches("a fraction of a loader without length is unknown",
      tiny.error_of(fit, together, { limit_train_batches = 0.5 }))
  end)

  it("resumes in the middle of an epoch of iterables", function()
    for _, mode in ipairs { "min_size", "max_size", "max_size_cycle" } do
      local function both()
        return data.CombinedLoader({ a = loader(6, 2), b = stream(2) }, mode)
      end
      local whole = fit(both(), { max_epochs = 2 })
      local cuts = {}
      for steps = 1, #whole - 1 do cuts[steps] = steps end
      for _, steps in ipairs(sample(cuts, 3)) do
        local _, trainer = fit(both(), { max_epochs = 2, max_steps = steps })
        local path = tiny.folder()
        trainer:save_checkpoint(path)
        assert.same(table.move(whole, steps + 1, #whole, 1, {}),
          (fit(both(), { max_epochs = 2 }, { ckpt_path = path })), mode .. " at " .. steps)
        os.remove(path)
      end
    end
  end)

  it("gives each rank its part, of what can be shared", function()
    local out = support.ranks(2, [[
      local net = lt.nn.Linear(1, 1)
      local seen = {}
      function net:training_step(batch)
        seen[#seen + 1] = batch.a[1]:sum():item()
        return self(batch.b[1]:reshape{-1, 1}):mean()
      end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      local function loader(n) return lt.data.DataLoader(
        lt.data.TensorDataset(lt.arange(n):float()), {batch_size = 2}) end
      lt.Trainer{accelerator = "cpu", logger = false, enable_checkpointing = false,
        enable_progress_bar = false, enable_model_summary = false, max_epochs = 1}
          :fit(net, {a = loader(8), b = loader(4)})
      print(lt.dist.rank() .. ": " .. table.concat(seen, " "))
    ]])
    assert.matches("0: 1.0 9.0", out)
    assert.matches("1: 5.0 13.0", out)
  end)
end)

describe("validate and predict", function()
  it("read a sequential combination one loader after the other, each with its number", function()
    local both = data.CombinedLoader({ b = loader(1, 1), a = stream(2) }, "sequential")
    local net, trainer = noting(true), tiny.trainer()
    local metrics = trainer:validate(net, both, { verbose = false })
    local places = {}
    for i, one in ipairs(net.seen) do places[i] = { one[1], one[2].k } end
    assert.same({ { 0, 1 }, { 1, 1 }, { 0, 2 } }, places)
    assert.same({ 0.5, 0.5 }, { metrics[1]["val/dataloader_idx_1"],
      metrics[2]["val/dataloader_idx_2"] })
    assert.same({ { { 100, k = 1 }, { 101, k = 1 } }, { { 0, k = 2 } } },
      trainer:predict(net, both))
  end)

  it("read together what is combined so", function()
    local both = data.CombinedLoader({ a = loader(4, 2), b = stream(3) }, "max_size")
    local net, trainer = noting(true), tiny.trainer { limit_predict_batches = 2 }
    trainer:validate(net, both, { verbose = false })
    assert.same({ { 0, { a = 1, b = 100, k = 1 } }, { 1, { a = 5, b = 101, k = 1 } },
      { 2, { b = 102, k = 1 } } }, net.seen)
    assert.same({ { a = 1, b = 100, k = 1 }, { a = 5, b = 101, k = 1 } },
      trainer:predict(net, both))
  end)

  it("deal batches of a combination to ranks in turns", function()
    local out = support.ranks(2, [[
      local net = lt.nn.Linear(1, 1)
      function net:predict_step(batch) return (batch.a[1] * 100 + batch.b[1]):tolist() end
      local function loader(n, size) return lt.data.DataLoader(
        lt.data.TensorDataset(lt.arange(n):float()), {batch_size = 1}) end
      local trainer = lt.Trainer{accelerator = "cpu", logger = false, enable_checkpointing = false,
        enable_progress_bar = false}
      local list = trainer:predict(net, lt.data.CombinedLoader({a = loader(5), b = loader(3)},
        "max_size_cycle"))
      if lt.dist.rank() == 0 then
        for i, v in ipairs(list) do list[i] = v[1] end
        print("got " .. table.concat(list, " "))
      end
    ]])
    assert.matches("got 0.0 101.0 202.0 300.0 401.0", out)
  end)
end)
