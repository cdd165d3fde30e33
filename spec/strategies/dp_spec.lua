-- spec/strategies/dp_spec.lua: DP: one process divides each batch among several devices.
-- tags: slow
local error_of = require("spec.trainer.tiny").error_of
local job = require "spec.dist.job"
local lt = require "ltrain"
local support = require "spec.dist.support"
local tiny = require "spec.trainer.tiny"
local trained = require "spec.dist.trained"

local F64 <const> = { dtype = "f64" }

-- Devices of a kind, as an accelerator: the k-th for the k-th part.
local function kind(name)
  return { device = function(_, k) return name == "cpu" and name or name .. ":" .. k end }
end

-- A trainer of `count` devices of a kind ("cpu", "fake").
local function on(name, count, o)
  local all = { strategy = "dp", accelerator = kind(name), devices = count, logger = false,
    num_sanity_val_steps = 0 }
  for key, value in pairs(o or {}) do all[key] = value end
  return tiny.trainer(all)
end

local function one(o)
  local all = { accelerator = kind "cpu", devices = 1, num_sanity_val_steps = 0 }
  for key, value in pairs(o or {}) do all[key] = value end
  return tiny.trainer(all)
end

-- Two layers in f64, of which the first is used twice, and a frozen one.
local Net = lt.Module:extend("Net")
function Net:init(o)
  lt.seed(5)
  self.o = o or {}
  self.first, self.last = lt.nn.Linear(3, 4), lt.nn.Linear(4, 1)
  self.frozen = lt.nn.Linear(1, 1)
  self.frozen.weight.requires_grad = false
  self.again = { self.first.weight }
  self:to "f64"
end
function Net:forward(x) return self.frozen(self.last(self.first(x):tanh())) end
function Net:loss(batch)
  local penalty = 0.0
  for _, parameter in ipairs(self:parameters()) do
    if parameter.requires_grad then penalty = penalty + parameter:square():sum() end
  end
  return (self(batch[1]) - batch[2]):square():mean() + 0.01 * penalty
end
function Net:training_step(batch)
  local loss = self:loss(batch)
  self:log("loss", loss, { on_step = true, on_epoch = true })
  return loss
end
function Net:validation_step(batch)
  local loss = self:loss(batch)
  self:log("val", loss, { on_step = true, on_epoch = true })
  return loss
end
Net.test_step = Net.validation_step
function Net:predict_step(batch) return self(batch[1]) end
function Net:configure_optimizers()
  return lt.optim.SGD(self:parameters(), { lr = 0.1, momentum = 0.9 })
end

-- 3 batches of 8 samples and one of 2, always the same.
local function loader(n)
  lt.seed(9)
  local x, y = lt.randn(n or 26, 3, F64), lt.randn(n or 26, 1, F64)
  return lt.data.DataLoader(lt.data.TensorDataset(x, y), { batch_size = 8 })
end

local function distance(a, b)
  local most = 0.0
  for name, value in pairs(a:state_dict()) do
    local other = b:state_dict()[name]:to "cpu"
    most = math.max(most, (value:to "cpu" - other):abs():max():item())
  end
  return most
end

-- A metric that a trainer has for callbacks.
local function number(trainer, name)
  local value = trainer.callback_metrics[name]
  return lt.is_tensor(value) and value:item() or value
end

describe("strategy = 'dp'", function()
  for _, place in ipairs { "cpu", "fake" } do
    for _, count in ipairs { 1, 2, 3 } do
      it(("trains on %d devices (%s) as on one"):format(count, place), function()
        local o = { max_epochs = 2, accumulate_grad_batches = 2, gradient_clip_val = 0.5 }
        local wanted, got = Net(), Net()
        local alone, trainer = one(o), on(place, count, o)
        alone:fit(wanted, loader(), loader(10))
        trainer:fit(got, loader(), loader(10))
        assert.is_true(distance(wanted, got) < 1e-12)
        for _, name in ipairs { "loss", "loss_step", "loss_epoch", "val_epoch" } do
          local a, b = number(alone, name), number(trainer, name)
          assert.is_true(math.abs(a - b) < 1e-9, name)
        end
        assert.equal(alone.global_step, trainer.global_step)
      end)
    end
  end

  it("evaluates and predicts on several devices as on one", function()
    local net = Net()
    local wanted, got = one():test(net, loader())[1], on("fake", 3):test(net, loader())[1]
    assert.is_true(math.abs(wanted.val_epoch - got.val_epoch) < 1e-12)
    local all, parts = one():predict(Net(), loader()), on("fake", 3):predict(Net(), loader())
    assert.equal(#all, #parts)
    for i, y in ipairs(all) do
      assert.same(y.shape, parts[i].shape)
      assert.is_true((y - parts[i]):abs():max():item() < 1e-12)
    end
  end)

  it("has each part on its own device, with copies of the parameters", function()
    local net, seen = Net(), {}
    function net:training_step(batch)
      seen[#seen + 1] = ("%s %s %s %d %d"):format(self.device, self.first.device, batch[1].device,
        batch[1].shape[1], #self:parameters())
      return self:loss(batch)
    end
    on("fake", 3, { max_steps = 1 }):fit(net, loader(8))
    assert.same({ "fake:0 fake:0 fake:0 3 6", "fake:1 fake:1 fake:1 3 6",
      "fake:2 fake:2 fake:2 2 6" }, seen)
    assert.equal("fake:0", net.device)
    for _, parameter in ipairs(net:parameters()) do assert.is_true(parameter.is_leaf) end
  end)

  it("keeps the buffers of the first device", function()
    local Norm = lt.Module:extend("Norm")
    function Norm:init()
      self.norm, self.w = lt.nn.BatchNorm1d(1, { momentum = 1.0 }), lt.parameter(lt.ones(1))
    end
    function Norm:training_step(x) return (self.norm(x) * self.w):square():mean() end
    Norm.configure_optimizers = tiny.Line.configure_optimizers
    for _, place in ipairs { "cpu", "fake" } do
      local net = Norm()
      net.lr = 0.1
      on(place, 2):fit(net, { lt.tensor { { 1.0 }, { 3.0 }, { 10.0 }, { 20.0 } } })
      assert.same({ 2 }, net.norm.running_mean:tolist())
      assert.equal(1, net.norm.num_batches_tracked:item())
    end
  end)

  it("sets the weights of losses that steps return", function()
    -- Losses of which the parts weigh 1 and 3: (1 * 2 + 3 * 6) / 4.
    local net, seen = tiny.Line(), nil
    function net:training_step(x)
      return { loss = self.w:sum() * x:mean(), weight = x:numel() == 2 and 1 or 3 }
    end
    function net:on_before_optimizer_step() seen = self.w.grad:item() end
    on("cpu", 2):fit(net, { lt.tensor { 1.0, 3.0, 6.0 } })
    assert.equal((1 * 2 + 3 * 6) / 4, seen)
  end)

  it("skips parts that return nil", function()
    local net, seen = tiny.Line(), nil
    function net:training_step(x) return x[1]:item() < 5 and self.w:sum() * x:mean() or nil end
    function net:on_before_optimizer_step() seen = self.w.grad:item() end
    local trainer = on("cpu", 2)
    trainer:fit(net, { lt.tensor { 1.0, 3.0, 6.0, 8.0 }, lt.tensor { 6.0, 7.0 } })
    assert.equal(2, seen)
    assert.equal(1, trainer.global_step)
  end)
end)

describe("under dp, training_step_end", function()
  it("gets what all parts returned, on the first device", function()
    local net, seen = Net(), nil
    function net:training_step(batch)
      return { loss = self:loss(batch), out = self(batch[1]), n = batch[1].shape[1],
        where = self.device, list = { batch[2] } }
    end
    function net.training_step_end(_, outputs)
      seen = outputs
      return outputs.loss:mean()
    end
    on("fake", 3, { max_steps = 1 }):fit(net, loader(8))
    assert.same({ 3 }, seen.loss.shape)
    assert.same({ 8, 1 }, seen.out.shape)
    assert.same({ 8, 1 }, seen.list[1].shape)
    assert.same({ 3, 3, 2 }, seen.n:tolist())
    assert.same({ "fake:0", "fake:1", "fake:2" }, seen.where)
    for _, x in ipairs { seen.loss, seen.out, seen.n } do assert.equal("fake:0", x.device) end
  end)

  it("may compute the loss of the whole batch from them", function()
    local wanted, got = Net(), Net()
    local softmax = function(y, t) return (y:softmax(1) - t:softmax(1)):square():sum() end
    function wanted:training_step(batch) return softmax(self(batch[1]), batch[2]) end
    function got:training_step(batch) return { y = self(batch[1]), t = batch[2] } end
    function got.training_step_end(_, all) return softmax(all.y, all.t) end
    one():fit(wanted, loader())
    on("fake", 2):fit(got, loader())
    assert.is_true(distance(wanted, got) < 1e-12)
  end)

  it("is matched by validation_step_end and test_step_end", function()
    for word, stage in pairs { validate = "validation", test = "test" } do
      local net, ended = tiny.Line(), {}
      net[stage .. "_step"] = function(_, x) return x:sum() end
      net[stage .. "_step_end"] = function(_, sums) return sums:tolist() end
      net["on_" .. stage .. "_batch_end"] = function(_, outputs) ended[#ended + 1] = outputs end
      local trainer = on("cpu", 2)
      trainer[word](trainer, net, tiny.batches({ 1, 2, 3, 4 }, { 5 }))
      assert.same({ { 3, 7 }, { 5 } }, ended)
    end
  end)

  it("cannot get parts that differ in kind", function()
    local net = tiny.Line()
    function net:training_step(x)
      local loss = self:loss(x)
      return x[1]:item() == 1 and { loss = loss, n = 1 } or { loss = loss }
    end
    assert.matches("training_step: not every part of a batch returned its result.n",
      error_of(function() on("cpu", 2):fit(net, tiny.same(1)) end))
    function net:training_step(x)
      return x[1]:item() == 1 and self:loss(x) or { loss = self:loss(x) }
    end
    assert.matches("training_step: parts of a batch returned different things as its result: "
      .. "a tensor.- and a table", error_of(function() on("cpu", 2):fit(net, tiny.same(1)) end))
  end)
end)

describe("under dp, a batch", function()
  -- What the steps get of a batch on two devices.
  local function parts_of(batch)
    local net, seen = tiny.Line(), {}
    function net:training_step(part)
      seen[#seen + 1] = part
      return self.w:sum()
    end
    on("cpu", 2):fit(net, { batch })
    return seen
  end

  it("is cut in its tables, and in lists with a value for each sample", function()
    local a, b = table.unpack(parts_of {
      x = lt.tensor { 1, 2, 3 }, deep = { { y = lt.tensor { 4, 5, 6 } } },
      words = { "a", "b", "c" }, boxes = { { lt.ones(1) }, { lt.ones(2) }, { lt.ones(4) } },
      table_of_3 = { lt.tensor { 1, 2, 3 }, lt.tensor { 1, 2, 3 }, lt.tensor { 4, 5, 6 } },
      scale = 7,
    })
    assert.same({ 1, 2 }, a.x:tolist())
    assert.same({ 3 }, b.x:tolist())
    assert.same({ 6 }, b.deep[1].y:tolist())
    assert.same({ { "a", "b" }, { "c" } }, { a.words, b.words })
    assert.same({ 2, 1 }, { #a.boxes, #b.boxes })
    assert.same({ 4 }, b.boxes[1][1].shape)
    assert.same({ 7, 7 }, { a.scale, b.scale })
    assert.same({ 3, 3 }, { #a.table_of_3, #b.table_of_3 })
    assert.same({ 6 }, b.table_of_3[3]:tolist())
  end)

  it("gives tensors of another first size to every device", function()
    local a, b = table.unpack(parts_of { lt.ones(4), lt.ones(3) })
    assert.same({ { 2 }, { 3 } }, { a[1].shape, a[2].shape })
    assert.same({ { 2 }, { 3 } }, { b[1].shape, b[2].shape })
  end)

  it("has as many parts as samples where these are fewer than devices", function()
    local net, sizes = tiny.Line(), {}
    function net:training_step(x)
      sizes[#sizes + 1] = x:numel()
      return self:loss(x)
    end
    on("fake", 3):fit(net, tiny.batches({ 1, 2 }, { 3 }, { 1, 2, 3, 4 }))
    assert.same({ 1, 1, 1, 2, 2 }, sizes)
  end)

  it("comes to hooks of batches whole, to those of the transfer in parts", function()
    local net, seen = tiny.Line(), {}
    function net.on_train_batch_start(_, x) seen[#seen + 1] = "start " .. x:numel() end
    function net.on_train_batch_end(_, loss, x)
      seen[#seen + 1] = ("end %d %d"):format(x:numel(), loss.ndim)
    end
    function net.on_after_batch_transfer(_, x)
      seen[#seen + 1] = ("on %s %d"):format(x.device, x:numel())
      return x
    end
    on("fake", 2):fit(net, tiny.batches { 1, 2, 3 })
    assert.same({ "start 3", "on fake:0 2", "on fake:1 1", "end 3 0" }, seen)
  end)
end)

describe("under dp, logged values", function()
  it("are those of the whole batch: means weighted, sums, minima, metrics", function()
    local net, rows = tiny.Line(), {}
    net.accuracy = lt.metrics.Accuracy()
    local both <const> = { on_step = true, on_epoch = true }
    local function options(how) return { on_step = true, on_epoch = true, reduce_fx = how } end
    function net:training_step(batch)
      local x, target = batch[1], batch[2]
      self.accuracy(x:gt(2):to "i64", target)
      self:log("acc", self.accuracy, both)
      self:log("mean", x:mean(), both)
      self:log("sum", x:sum(), options "sum")
      self:log("min", x:min(), options "min")
      return self:loss(x)
    end
    function net:on_train_batch_end()
      local row = {}
      for _, name in ipairs { "acc", "mean", "sum", "min" } do
        row[name] = number(self.trainer, name .. "_step")
      end
      rows[#rows + 1] = row
    end
    local trainer = on("fake", 2)
    local function i64(list) return lt.tensor(list, { dtype = "i64" }) end
    trainer:fit(net, { { lt.tensor { 1.0, 2.0, 6.0 }, i64 { 0, 1, 1 } },
      { lt.tensor { 5.0 }, i64 { 0 } } })
    assert.is_true(math.abs(rows[1].acc - 2 / 3) < 1e-6)
    rows[1].acc = nil
    assert.same({ { mean = 3, sum = 9, min = 1 }, { acc = 0, mean = 5, sum = 5, min = 5 } }, rows)
    local m = trainer.callback_metrics
    assert.same({ 0.5, 3.5, 14, 1 }, { m.acc_epoch, m.mean_epoch, m.sum_epoch, m.min_epoch })
  end)
end)

describe("under dp, random numbers", function()
  it("differ between parts, and are the same in every run", function()
    local function draws(count)
      lt.seed(3)
      local net, all = tiny.Line(), {}
      function net:training_step(x)
        all[#all + 1] = lt.rand(1):item()
        return self:loss(x)
      end
      function net.on_train_batch_end() all[#all + 1] = lt.rand(1):item() end
      on("cpu", count):fit(net, tiny.same(2, { 1.0, 2.0, 3.0 }))
      return all
    end
    local alone, parts = draws(1), draws(3)
    assert.same(parts, draws(3))
    local seen = {}
    for _, x in ipairs(parts) do
      assert.is_nil(seen[x])
      seen[x] = true
    end
    assert.same(alone, { parts[1], parts[4], parts[5], parts[8] })
  end)
end)

describe("Trainer{strategy = 'dp'}", function()
  it("is Lightning's accelerator = 'dp' too, with gpus as its devices", function()
    local trainer = tiny.trainer { accelerator = "dp", num_processes = 2 }
    assert.equal("DP", getmetatable(trainer.strategy).__name)
    assert.same({ "cpu", "cpu" }, trainer.strategy.devices)
    assert.same({ 0, 1 }, trainer.device_ids)
    assert.equal(1, trainer.world_size)
    trainer = tiny.trainer { strategy = "dp", accelerator = "fake", devices = { 1, 2 } }
    assert.same({ "fake:1", "fake:2" }, trainer.strategy.devices)
    assert.same({ 1, 2 }, trainer.device_ids)
    assert.equal("fake:1", trainer.strategy.root_device)
  end)

  it("notes that parts on the CPU are computed one after the other", function()
    local status, out = support.run [[
      lt.Trainer {strategy = "dp", devices = 3, logger = false}
      lt.Trainer {strategy = "dp", devices = 1, logger = false}
    ]]
    assert.equal(0, status)
    assert.matches("note: strategy = 'dp': the 3 parts of each batch are computed on cpu, one "
      .. "after the other; strategy = 'ddp' computes on 3 processes\n", out)
    assert.equal(1, select(2, out:gsub("note:", "")))
  end)

  it("refuses what steps within training_step, and slices of its own", function()
    local net = tiny.Line()
    net.automatic_optimization = false
    assert.matches("fit: .-DP runs training_step once for each device: manual optimization steps "
      .. "within it: write strategy = 'ddp'",
      error_of(function() on("cpu", 2):fit(net, tiny.same(1)) end))
    assert.matches("strategies.DP: deterministic = 'world' cuts batches itself",
      error_of(function() on("cpu", 2, { deterministic = "world" }):fit(Net(), loader()) end))
  end)

  it("is one process", function()
    local status, out = support.run [[
      dist.launch(2, function()
        lt.Trainer {strategy = "dp", devices = 2, logger = false}
      end)
    ]]
    assert.equal(1, status)
    assert.matches("strategy = 'dp' is one rank: got 2", out)
  end)
end)

describe("strategy = 'ddp2'", function()
  it("is dp in each rank and ddp between them: the same as one device", function()
    local script <const> = [[
      local Net = lt.Module:extend("Net")
      function Net:init()
        lt.seed(4)
        self.layer = lt.nn.Linear(3, 1):to "f64"
      end
      function Net:training_step(batch)
        local loss = (self.layer(batch[1]) - batch[2]):square():mean()
        self:log("loss", loss, {on_epoch = true})
        return loss
      end
      function Net:configure_optimizers()
        return lt.optim.SGD(self:parameters(), {lr = 0.1, momentum = 0.9})
      end
      local function fit(o)
        lt.seed(2)
        local f64 = {dtype = "f64"}
        local data = lt.data.TensorDataset(lt.randn(26, 3, f64), lt.randn(26, 1, f64))
        o.logger, o.max_epochs, o.enable_checkpointing = false, 2, false
        o.enable_progress_bar, o.enable_model_summary = false, false
        local net, t = Net(), lt.Trainer(o)
        t:fit(net, lt.data.DataLoader(data, {global_batch_size = 8}))
        return net, t
      end
      local wanted, alone = fit {devices = 1}
      local function near(a, b) return math.abs(a - b) < 1e-9 end
      dist.launch(2, function(rank)
        local got, t = fit {strategy = "ddp2", devices = 4, accelerator = {
          device = function(_, k) return PLACE end}}
        same({PARTS}, t.strategy.devices)
        same(2, t.world_size)
        local w = got.layer.weight:to "cpu"
        assert((w - wanted.layer.weight):abs():max():item() < 1e-12)
        assert(near(t.callback_metrics.loss_epoch, alone.callback_metrics.loss_epoch))
      end)
    ]]
    for _, case in ipairs { { [["cpu"]], [["cpu", "cpu"]] },
      { [["fake:" .. k]], [["fake:" .. 2 * rank, "fake:" .. 2 * rank + 1]] } } do
      local status, out = support.run((script:gsub("PLACE", case[1]):gsub("PARTS", case[2])))
      assert.equal(0, status, out)
    end
  end)

  it("has one rank for each machine", function()
    local can, missing = job.can "two hosts"
    if not can then
      pending(missing)
      return
    end
    local scripts = trained.with [[
      local Line = lt.Module:extend("Line")
      function Line:init() self.w = lt.parameter(lt.tensor({0.5}, {dtype = "f64"})) end
      function Line:training_step(batch) return (self.w * batch[1] - 1):square():mean() end
      function Line:configure_optimizers() return lt.optim.SGD({self.w}, {lr = 0.1}) end
      local function fit(o)
        local x = lt.arange(26, {dtype = "f64"}) / 20
        local net, t = Line(), trainer(o)
        t:fit(net, lt.data.DataLoader(lt.data.TensorDataset(x), {global_batch_size = 8}))
        return ("%.9f"):format(net.w:item()), t
      end
    ]]
    local wanted = scripts.output(1, "print((fit {}))")
    local got = scripts.over("two hosts", 2, [[
      local w, t = fit {strategy = "ddp2", devices = 3, num_nodes = 2}
      assert(#t.strategy.devices == 3 and t.world_size == 2)
      print(w)
    ]])
    assert.equal(wanted, got)
  end)

  it("cannot share devices unevenly", function()
    local status, out = support.run [[
      dist.launch(2, function() lt.Trainer {strategy = "ddp2", devices = 3, logger = false} end)
    ]]
    assert.equal(1, status)
    assert.matches("strategies.DDP2: 2 ranks on .- cannot share 3 devices evenly: start one rank "
      .. "for each machine", out)
  end)

  it("is dp on one machine", function()
    local wanted, got = Net(), Net()
    one():fit(wanted, loader())
    on("fake", 3, { strategy = "ddp2" }):fit(got, loader())
    assert.is_true(distance(wanted, got) < 1e-12)
  end)
end)
