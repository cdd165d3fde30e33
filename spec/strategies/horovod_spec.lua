-- spec/strategies/horovod_spec.lua: strategy = "horovod", lt.dist.DistributedOptimizer, and
-- Horovod's names.
-- tags: half, slow
local error_of = require("spec.trainer.tiny").error_of
local job = require "spec.dist.job"
local lt = require "ltrain"
local support = require "spec.dist.support"
local trained = require "spec.dist.trained"

local NET <const> = [[
local rank = lt.dist.rank
local f64 = {dtype = "f64"}
local Net = lt.Module:extend("Net")
function Net:init(lr)
  lt.seed(5)
  self.first, self.last, self.lr = lt.nn.Linear(3, 4), lt.nn.Linear(4, 1), lr or 0.1
  self:to "f64"
end
function Net:training_step(batch)
  local y = self.last(self.first(batch[1]):tanh())
  return (y - batch[2]):square():mean()
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = self.lr}) end
local function loader(n)
  lt.seed(9)
  local x, y = lt.randn(n, 3, f64), lt.randn(n, 1, f64)
  return lt.data.DataLoader(lt.data.TensorDataset(x, y), {global_batch_size = 8})
end
local function fit(strategy, n, lr, o)
  local net, all = Net(lr), {strategy = strategy, max_epochs = 2}
  for name, value in pairs(o or {}) do all[name] = value end
  trainer(all):fit(net, loader(n))
  return net
end
local function distance(a, b)
  local most = 0.0
  for name, value in pairs(a:state_dict()) do
    most = math.max(most, (value - b:state_dict()[name]):abs():max():item())
  end
  return most
end
-- One step from zero of a weight [2] and a bias [2] by gradients that `of(rank)` returns, lists;
-- nil: none. What they become.
local function gradients(strategy, of, dtype)
  local Free = lt.Module:extend("Free")
  function Free:init()
    self.a = lt.parameter(lt.zeros({2}, {dtype = dtype}))
    self.b = lt.parameter(lt.zeros({2}, {dtype = dtype}))
  end
  function Free:training_step()
    local loss = 0.0
    for k, grad in pairs(of(rank())) do
      loss = loss + (self[k] * lt.tensor(grad, {dtype = dtype, device = self.device})):sum()
    end
    return loss
  end
  function Free:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 1.0}) end
  local net = Free()
  local data = lt.data.DataLoader(lt.data.TensorDataset(lt.zeros(8, 1)), {global_batch_size = 8})
  trainer({strategy = strategy, nonfinite = "allow"}):fit(net, data)
  return {a = (-net.a):tolist(), b = (-net.b):tolist()}
end
]]

local scripts <const> = trained.with(NET)

local function prints(wanted, n, script)
  assert.equal(wanted, (scripts.output(n, script):gsub("\t", " ")))
end

local function fails(n, words, script)
  local status, _, err = scripts.run(n, script)
  assert.equal(1, status, err)
  assert.matches(words, err)
end

describe("strategy = 'horovod'", function()
  it("averages as one process on the joined batch, also in two levels", function()
    local script <const> = [[
      for _, o in ipairs {{}, {hierarchical = true}, {gradient_predivide_factor = 4}} do
        local strategy = {"horovod", table.unpack({})}
        for name, value in pairs(o) do strategy[name] = value end
        local net = fit(strategy, 26)
        print(("%.9f %.9f"):format(net.first.weight:square():sum():item(), net.last.bias:item()))
      end
    ]]
    local wanted = scripts.output(1, script)
    assert.equal(wanted, (scripts.output(2, script)))
    assert.equal(wanted, (scripts.output(3, script)))
  end)

  it("sums: with the learning rate divided by the ranks it is the average", function()
    prints("true\n", 2, [[
      local average, sum = fit("horovod", 32, 0.1), fit({"horovod", op = "sum"}, 32, 0.05)
      print(distance(average, sum) < 1e-12)
    ]])
  end)

  it("combines by adasum, parameter by parameter, in pairs of ranks", function()
    prints("true true true\n", 4, [[
      local of = {
        {a = {1.0, 2.0}, b = {0.5, -1.0}}, {a = {-2.0, 0.25}, b = {3.0, 1.0}},
        {a = {4.0, 1.0}}, {a = {0.0, 0.0}, b = {1.0, 1.0}},
      }
      local function dot(x, y) return x[1] * y[1] + x[2] * y[2] end
      local function pair(x, y)
        local of_x = dot(x, x) > 0 and 1 - dot(x, y) / (2 * dot(x, x)) or 1
        local of_y = dot(y, y) > 0 and 1 - dot(x, y) / (2 * dot(y, y)) or 1
        return {of_x * x[1] + of_y * y[1], of_x * x[2] + of_y * y[2]}
      end
      local function by_hand(k)
        local g = {}
        for r = 1, 4 do g[r] = of[r][k] or {0, 0} end
        return pair(pair(g[1], g[2]), pair(g[3], g[4]))
      end
      local function near(x, y)
        return math.abs(x[1] - y[1]) < 1e-12 and math.abs(x[2] - y[2]) < 1e-12
      end
      local got = gradients({"horovod", op = "adasum"}, function(r) return of[r + 1] end, "f64")
      -- Equal gradients give their mean, orthogonal ones their sum.
      local equal = gradients({"horovod", op = "adasum"}, function() return {a = {1.0, 2.0}} end,
        "f64")
      print(near(got.a, by_hand "a"), near(got.b, by_hand "b"), near(equal.a, {1, 2}))
    ]])
  end)

  it("sends in fp16, after the division that keeps sums finite", function()
    prints("1.0 inf 40000.0\n", 2, [[
      local function of(strategy, value)
        return gradients(strategy, function() return {a = {value, 0.0}} end, "f32").a[1]
      end
      local fp16 = {"horovod", compression = "fp16"}
      print(of(fp16, 1 + 2 ^ -12), of(fp16, 40000.0),
        of({"horovod", compression = "fp16", gradient_predivide_factor = 4}, 40000.0))
    ]])
  end)

  it("accumulates, clips and validates as ddp", function()
    prints("true\n", 2, [[
      local o = {accumulate_grad_batches = 2, gradient_clip_val = 0.1}
      print(distance(fit("ddp", 26, 0.1, o), fit("horovod", 26, 0.1, o)) == 0)
    ]])
  end)

  it("runs under mpirun", function()
    local missing = require "ltrain.clusters.mpirun".missing()
    if missing then
      pending(missing)
      return
    end
    local wanted = scripts.output(1, "print(('%.9f'):format(fit('ddp', 26).last.bias:item()))")
    assert.equal(wanted, (scripts.over("mpi", 2, [[
      local net = fit({"horovod", hierarchical = true}, 26)
      print(("%.9f"):format(net.last.bias:item()))
    ]])))
  end)

  it("sums within machines first", function()
    local can, missing = job.can "two hosts"
    if not can then
      pending(missing)
      return
    end
    local wanted = scripts.output(1, "print(('%.9f'):format(fit('ddp', 26).last.bias:item()))")
    assert.equal(wanted, (scripts.over("two hosts", 4, [[
      local net = fit({"horovod", hierarchical = true}, 26)
      print(("%.9f"):format(net.last.bias:item()))
    ]])))
  end)

  it("says what does not go together", function()
    fails(3, "strategies.Horovod: adasum combines ranks in pairs: their number must be a power of "
      .. "two: got 3", "fit({'horovod', op = 'adasum'}, 24)")
    fails(2, "deterministic = 'world' needs results that do not depend on the number of ranks, and "
      .. "with op = 'sum' they do", [[
      fit({"horovod", op = "sum"}, 24, 0.1, {deterministic = "world"})
    ]])
    assert.matches("strategies.Horovod: op = 'adasum' has its own order of ranks and no division: "
      .. "remove hierarchical", error_of(lt.strategies.Horovod, { op = "adasum",
      hierarchical = true }))
    assert.matches("backward_passes_per_step is not an option here: write "
      .. "accumulate_grad_batches = N", error_of(lt.strategies.Horovod,
      { backward_passes_per_step = 2 }))
  end)
end)

-- The same seed on every rank; each its own rows of one batch.
local LOOP <const> = [[
  lt.seed(3)
  local net = lt.nn.Linear(3, 2):to "f64"
  local x, y = lt.randn(8, 3, {dtype = "f64"}), lt.randn(8, 2, {dtype = "f64"})
  local n = 8 // dist.world_size()
  local function own(t) return t:narrow(1, rank * n + 1, n) end
  local function loss(a, b) return (net(a) - b):square():mean() end
  local function near(a, b) assert((a - b):abs():max():item() < 1e-12) end
  local sgd = lt.optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9})
]]

describe("lt.dist.DistributedOptimizer", function()
  it("steps with the mean, or the sum, of all ranks' gradients", function()
    support.ranks(2, LOOP .. [[
      loss(x, y):backward()
      local wanted = {net.weight.grad:clone(), net.bias.grad:clone()}
      for _, op in ipairs {"average", "sum"} do
        local before = net.weight:detach():clone()
        local plain = lt.optim.SGD(net:parameters(), {lr = 0.1})
        local optimizer = dist.DistributedOptimizer(plain, {op = op,
          named_parameters = net:named_parameters()})
        assert(optimizer == plain)
        optimizer:zero_grad()
        loss(own(x), own(y)):backward()
        near(net.weight:detach(), before)
        optimizer:synchronize()
        near(net.weight.grad, wanted[1] * (op == "sum" and 2 or 1))
        near(net.bias.grad, wanted[2] * (op == "sum" and 2 or 1))
        do
          local _ <close> = optimizer:skip_synchronize()
          optimizer:step()
        end
        near(net.weight:detach(), before - 0.1 * wanted[1] * (op == "sum" and 2 or 1))
        lt.allow_update(function() net.weight:copy_(before) end)
        net:zero_grad()
        loss(x, y):backward()
        wanted = {net.weight.grad:clone(), net.bias.grad:clone()}
      end
    ]])
  end)

  it("is the optimizer: schedulers, saved states, closures", function()
    support.ranks(2, LOOP .. [[
      local optimizer = dist.DistributedOptimizer(sgd, {compression = "none"})
      same("SGD", optimizer:state_dict().class)
      local scheduler = lt.optim.StepLR(optimizer, {step_size = 1})
      local function closure()
        optimizer:zero_grad()
        local l = loss(own(x), own(y))
        l:backward()
        return l
      end
      local before = net.weight:detach():clone()
      local l = optimizer:step(closure)
      scheduler:step()
      same(loss(own(x), own(y)).shape, l.shape)
      assert(not before:equal(net.weight:detach()))
      local all = dist.all_gather(net.weight:detach())
      same(all[1], all[2])
      lt.optim.SGD(net:parameters(), {lr = 0.1, momentum = 0.9}):load_state_dict(
        optimizer:state_dict())
    ]])
  end)

  it("reduces by adasum and in fp16, and keeps gradients that no rank has nil", function()
    support.ranks(2, LOOP .. [[
      net.bias.requires_grad = false
      for _, o in ipairs {{op = "adasum"}, {compression = "fp16"}, {hierarchical = true}} do
        local optimizer = dist.DistributedOptimizer(lt.optim.SGD(net:parameters(), {lr = 0.1}), o)
        net:zero_grad()
        loss(x, y):backward() -- equal on both ranks: the mean and adasum are it
        local wanted = net.weight.grad:clone()
        optimizer:synchronize()
        assert((net.weight.grad - wanted):abs():max():item() < 1e-3)
        same(nil, net.bias.grad)
      end
    ]])
  end)

  it("says how it is used", function()
    support.ranks(2, LOOP .. [[
      local optimizer = dist.DistributedOptimizer(sgd)
      loss(own(x), own(y)):backward()
      optimizer:synchronize()
      local text = error_of(optimizer.step, optimizer)
      assert(text:find("synchronize was called already in this step", 1, true), text)
      text = error_of(dist.DistributedOptimizer, optimizer)
      assert(text:find("the optimizer is one already", 1, true), text)
    ]])
    assert.matches("dist.DistributedOptimizer: needs an optimizer: got a table",
      error_of(lt.dist.DistributedOptimizer, {}))
    local net = lt.Module:extend "Net" ()
    net.layer = lt.nn.Linear(1, 1)
    function net:training_step(x) return self.layer(x):mean() end
    function net:configure_optimizers()
      return lt.dist.DistributedOptimizer(lt.optim.SGD(self:parameters(), { lr = 0.1 }))
    end
    local trainer = require("spec.trainer.tiny").trainer {}
    assert.matches("the Trainer reduces gradients: configure_optimizers returns the optimizer",
      error_of(function() trainer:fit(net, { lt.ones(2, 1) }) end))
  end)
end)

describe("lt.dist.broadcast_parameters", function()
  it("copies modules, state_dicts and lists from a rank to all", function()
    support.ranks(3, [[
      local function filled(value) return lt.full({2}, value + 0.0) end
      local net = lt.nn.BatchNorm1d(2)
      net.weight:detach():fill_(rank)
      net.running_mean:fill_(rank)
      dist.broadcast_parameters(net)
      same({filled(0), filled(0)}, {net.weight:detach(), net.running_mean})
      net.weight:detach():fill_(rank)
      dist.broadcast_parameters(net:state_dict(), {from = 2})
      same(filled(2), net.weight:detach())
      local list = {filled(rank), filled(rank + 10)}
      dist.broadcast_parameters(list, {from = 1})
      same({filled(1), filled(11)}, list)
      same(rank, dist.local_rank())
    ]])
    local out = support.fails [[
      dist.launch(2, function(rank)
        dist.broadcast_parameters({lt.ones(rank + 1)}, {from = 1})
      end)
    ]]
    assert.matches("rank 1 has 0 %[2%] f32, rank 0 has 0 %[1%] f32", out)
  end)

  it("with broadcast_optimizer_state: all ranks go on as one did", function()
    support.ranks(2, LOOP .. [[
      if rank == 1 then
        loss(x, y):backward()
        sgd:step()
        sgd.param_groups[1].lr = 0.25
      end
      dist.broadcast_parameters(net, {from = 1})
      dist.broadcast_optimizer_state(sgd, {from = 1})
      same(0.25, sgd.param_groups[1].lr)
      net:zero_grad()
      loss(x, y):backward()
      sgd:step()
      local all = dist.all_gather(net.weight:detach())
      same(all[1], all[2])
    ]])
  end)
end)

describe("lt.horovod", function()
  local CALLS <const> = [[
    local hvd = lt.horovod
    hvd.init()
    same({rank, 2, rank, 2, 0, 1}, {hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(),
      hvd.cross_rank(), hvd.cross_size()})
    local x = lt.tensor {rank + 1.0, 4.0}
    same(lt.tensor {1.5, 4.0}, hvd.allreduce(x, {name = "x"}))
    same(lt.tensor {3.0, 8.0}, hvd.allreduce(x, {op = hvd.Sum}))
    same(lt.tensor {3.0, 8.0}, hvd.allreduce(x, {average = false}))
    same(lt.tensor {2.0, 4.0}, hvd.allreduce(x, {op = hvd.Max, compression = hvd.Compression.fp16}))
    same(lt.tensor {6.0, 16.0}, hvd.allreduce(x, {op = hvd.Sum, prescale_factor = 4,
      postscale_factor = 0.5}))
    same(lt.tensor {4.0}, hvd.allreduce(lt.tensor {4.0}, {op = hvd.Adasum}))
    local handle = hvd.allreduce_async(x)
    same("boolean", type(hvd.poll(handle)))
    same(lt.tensor {1.5, 4.0}, hvd.synchronize(handle))
    same({lt.tensor {1.5, 4.0}, lt.tensor {0.5}}, hvd.grouped_allreduce {x, lt.tensor {rank * 1.0}})
    local y = lt.tensor {rank * 1.0}
    same(true, rawequal(y, hvd.synchronize(hvd.allreduce_async_(y))))
    same(0.5, y:item())
    same(lt.tensor {1.0, 4.0, 2.0, 4.0}, hvd.allgather(x))
    same(lt.tensor {1.0, 4.0, 2.0, 4.0}, hvd.synchronize(hvd.allgather_async(x)))
    same(lt.tensor {2.0, 4.0}, hvd.broadcast(x, 1))
    same(lt.tensor {rank + 0.5}, hvd.reducescatter(lt.tensor {rank * 1.0, 1.0 + rank}))
    hvd.broadcast_(x, 1)
    same(lt.tensor {2.0, 4.0}, x)
    same({"a", 1}, hvd.broadcast_object(rank == 0 and {"a", 1} or nil))
    same({0, 10}, hvd.allgather_object(rank * 10))
    hvd.barrier()
    assert(error_of(hvd.join):find("take part with a weight of 0", 1, true))
    assert(error_of(function() return hvd.allreduce_sync end):find("did you mean", 1, true))
    hvd.shutdown()
  ]]
  it("calls lt.dist by Horovod's names", function()
    support.ranks(2, CALLS)
  end)

  it("does so under mpirun", function()
    local missing = require "ltrain.clusters.mpirun".missing()
    if missing then
      pending(missing)
      return
    end
    local status, output = support.mpirun(2, "local rank = dist.rank() " .. CALLS, "run")
    assert.equal(0, status, output)
  end)
end)
