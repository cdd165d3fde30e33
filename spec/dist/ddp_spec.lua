-- spec/dist/ddp_spec.lua: the numbers of a fit on several ranks are those of one process.
-- tags: slow, threads
local trained = require "spec.dist.trained"

-- A net of two layers that logs loss and metrics, and 68 samples.
local scripts <const> = trained.with [[
lt.seed(3)
local Net = lt.Module:extend("Net")
function Net:init()
  self.first, self.second = lt.nn.Linear(4, 8), lt.nn.Linear(8, 2)
  self.accuracy = lt.metrics.Accuracy()
  self:to("f64")
end
function Net:forward(x) local hidden = self.first(x):tanh() return self.second(hidden) end
function Net:loss(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function Net:training_step(batch)
  local loss = self:loss(batch)
  self:log("loss", loss, {on_epoch = true})
  return loss
end
function Net:validation_step(batch)
  local y = self(batch[1])
  self.accuracy:update(y, batch[2])
  self:log("acc", self.accuracy)
  self:log("val_loss", lt.cross_entropy(y, batch[2]))
  self:log("seen", batch[1].shape[1], {reduce_fx = "sum"})
end
function Net:configure_optimizers()
  return lt.optim.SGD(self:parameters(), {lr = 0.5, momentum = 0.9})
end
local x = lt.randn(68, 4, {dtype = "f64"})
local data = lt.data.TensorDataset(x, x:sum(2):gt(0):to("i64"))
local function loader(batch_size, shuffle)
  return lt.data.DataLoader(data, {batch_size = batch_size, shuffle = shuffle})
end
local function weights(net)
  local sums = {}
  for i, p in ipairs(net:parameters()) do
    sums[i] = ("%.10g %.10g"):format(p:abs():sum():item(), p:sum():item())
  end
  return table.concat(sums, " ")
end
]]

local run <const>, same_on_all <const> = scripts.output, scripts.same

describe("a fit on 1, 2 and 4 ranks", function()
  it("gives the same weights and metrics for the same global batch", function()
    same_on_all [[
      local net, t = Net(), trainer {max_epochs = 2}
      t:fit(net, loader(16 // n, true), loader(5))
      local m = t.callback_metrics
      print(weights(net))
      print(t.global_step, ("%.9g %.9g %.9g %d"):format(m.loss_epoch, m.acc, m.val_loss, m.seen))
    ]]
  end)

  it("reduces once a window of accumulated batches", function()
    same_on_all [[
      local net, t = Net(), trainer {max_epochs = 2, accumulate_grad_batches = 3}
      t:fit(net, loader(16 // n, true))
      print(weights(net), t.global_step)
    ]]
  end)

  it("gives the same in validate and test, each sample once", function()
    same_on_all [[
      local net, t = Net(), trainer {}
      Net.test_step = Net.validation_step
      local a = t:validate(net, loader(3), {verbose = false})[1]
      local b = t:test(net, loader(7), {verbose = false})[1]
      print(("%.9g %.9g %d %.9g %d"):format(a.val_loss, a.acc, a.seen, b.val_loss, b.seen))
    ]]
  end)
end)

describe("ranks that differ", function()
  it("count with the samples that they have: one skips a batch", function()
    local out = run(2, [[
      local net, t = Net(), trainer {max_steps = 1}
      function net:training_step(batch)
        if lt.dist.rank() == 1 then return nil end
        return self:loss(batch)
      end
      t:fit(net, loader(8))
      -- The same step in one process, on rank 0's samples alone.
      lt.seed(3)
      lt.randn(68, 4, {dtype = "f64"})
      local alone = Net()
      trainer({devices = 1, max_steps = 1}):fit(alone,
        lt.data.DataLoader(lt.data.Subset(data, {1, 2, 3, 4, 5, 6, 7, 8}), {batch_size = 8}))
      print(t.global_step, #weights(net) > 0)
    ]])
    assert.equal("1\ttrue\n", out)
  end)

  it("leave a parameter that none used without gradient, and share one that some used", function()
    local out = run(2, [[
      local net, t = Net(), trainer {max_steps = 1}
      net.extra, net.unused = lt.nn.Linear(4, 2):to("f64"), lt.nn.Linear(4, 2):to("f64")
      local before = net.extra.weight:clone()
      function net:training_step(batch)
        if lt.dist.rank() == 0 then return self:loss(batch) end
        return self:loss(batch) + self.extra(batch[1]):pow(2):mean()
      end
      t:fit(net, loader(8))
      print((net.extra.weight:to 'cpu' - before):abs():sum():item() > 0, net.unused.weight.grad)
    ]])
    assert.equal("true\tnil\n", out)
  end)

  it("are distinguished when they built other modules", function()
    local status, _, err = scripts.run(2, [[
      local net, t = Net(), trainer {}
      function net:setup()
        if lt.dist.rank() == 1 then self.second = lt.nn.Linear(9, 2):to("f64") end
      end
      t:fit(net, loader(8))
    ]])
    assert.equal(1, status)
    assert.matches("ranks built different modules: rank 0 has second.weight %[2, 8%] f64, "
      .. "rank 1 has second.weight %[2, 9%] f64", err)
  end)

  it("stop at the same step when one is asked to", function()
    local out = run(4, [[
      local net, t = Net(), trainer {max_epochs = 50}
      local steps
      function net:training_step(batch, i)
        if lt.dist.rank() == 3 and i == 2 then self.trainer.should_stop = true end
        return self:loss(batch)
      end
      function net:on_train_end() steps = lt.dist.all_gather(self.trainer.global_step) end
      t:fit(net, loader(4))
      print(table.concat(steps, " "))
    ]])
    assert.equal("3 3 3 3\n", out)
  end)

  it("may log a key that others do not", function()
    local out = run(2, [[
      local net, t = Net(), trainer {max_epochs = 1}
      function net:training_step(batch)
        if lt.dist.rank() == 1 then self:log("only", 5.0, {on_epoch = true, on_step = false}) end
        return self:loss(batch)
      end
      t:fit(net, loader(8))
      print(t.callback_metrics.only)
    ]])
    assert.equal("5.0\n", out)
  end)
end)

describe("the loaders of a fit on ranks", function()
  it("are whole again after it", function()
    local out = run(2, [[
      local whole = loader(8)
      trainer({max_epochs = 1}):fit(Net(), whole)
      print(#whole)
    ]])
    assert.equal("9\n", out)
  end)

  it("are left alone with use_distributed_sampler = false, and when they cannot be cut", function()
    local out, err = run(2, [[
      local t = trainer {max_epochs = 1, use_distributed_sampler = false}
      t:fit(Net(), loader(8))
      local u = trainer {max_epochs = 1}
      u:fit(Net(), {{x, data:get(1)[2]:expand(68)}})
      print(t.global_step, u.global_step)
    ]])
    assert.equal("9\t1\n", out)
    assert.matches("every rank reads all of", err)
  end)
end)
