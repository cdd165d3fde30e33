-- spec/dist/devices_spec.lua: ranks on devices: collectives and fits give the CPU's results.
-- tags: slow, third
local every_collective = require "spec.dist.every_collective"
local on_host = require "spec.dist.support"
local trained = require "spec.dist.trained"

-- The kind of devices: "fake" where it is none that the suite names (spec/devices.lua). It stands
-- for it in all scripts.
local NAME <const> = os.getenv "LT_TEST_DEVICE" or "fake"
local function there(code) return (code:gsub("%f[%w_]fake%f[^%w_]", NAME)) end

local support <const> = {
  every_reduction = on_host.every_reduction,
  passes = function(code) return on_host.passes(there(code)) end,
  fails = function(code) return on_host.fails(there(code)) end,
  ranks = function(n, body) return on_host.ranks(n, there(body)) end,
}

-- A tensor of this rank on its device, and one of the same on the CPU.
local TWO <const> = [[
  local device = "fake:" .. rank
  local x = lt.randn(5, 3, {dtype = "f64"}) * (rank + 1)
  local y = x:to(device)
  local function both(name, options)
    local wanted, got = dist[name](x, options), dist[name](y, options)
    same(wanted and device, got and got.device)
    same(wanted, got and got:to("cpu"))
  end
]]

-- Opens a link between fake devices.
local REGISTER <const> = ("lt.dist.register_comm('files_device', '%s') "):format(
  (os.getenv "LT_BUILD" or "build") .. "/spec/c/backends/ltrain_files_device.so")

describe("collectives on a device", function()
  it("give what they give on the CPU, where their input was", function()
    support.ranks(3, 'local device = "fake:" .. rank\n' .. every_collective)
  end)

  it("have gradients where their input was", function()
    support.ranks(2, [[
      local device = "fake:" .. rank
      local function leaf() return lt.tensor({1.0, 2}, {requires_grad = true, device = device}) end
      local function check(x, wanted)
        same(device, x.grad.device)
        same(wanted, x.grad:to "cpu")
      end
      local x, y, z = leaf(), leaf(), leaf()
      local all = dist.gather(x * 2)
      same(device, all.device)
      local loss = rank == 0 and (all:to "cpu" * lt.tensor{{1.0}, {10}}):sum():to(device) or all
      loss:backward()
      check(x, lt.full({2}, rank == 0 and 2.0 or 20.0));
      (dist.scatter(rank == 1 and y or nil, {from = 1}) * (rank + 3.0)):sum():backward()
      if rank == 1 then check(y, lt.tensor{3.0, 4}) end
      if rank == 0 then
        dist.send(z, 1):backward()
        check(z, lt.full({2}, 5.0))
      else
        local got = dist.recv(0):to(device) * 5
        got:sum():backward()
      end
    ]])
  end)

  it("reduce every dtype by every operation", function()
    support.ranks(3, (support.every_reduction:gsub("(lt%.full%(%b())%)", "%1):to('fake:' .. rank)")
      :gsub("same%((.-), dist", "same((%1), dist")))
  end)

  it("reduce in place", function()
    support.ranks(2, TWO .. [[
      local wanted = dist.all_reduce(x)
      same(true, rawequal(y, dist.all_reduce_(y)))
      same(wanted, y:to("cpu"))
    ]])
  end)

  it("come after the work that made their input, and before the work on their result", function()
    support.ranks(2, [[
      local device = "fake:" .. rank
      local x = lt.ones(4):to(device)
      for k = 1, 20 do
        x = x * 2
        local sum = dist.all_reduce(x)
        x:mul_(0.5)
        x = x + sum * 0.5 -- x and half of 4 x: rank-independent
      end
      same(lt.full({4}, 3.0 ^ 20), x:to("cpu"))
    ]])
  end)

  it("may be under way together", function()
    support.ranks(2, TWO .. [[
      local wanted = {dist.all_reduce(x), dist.all_gather(x)}
      local handles = {dist.all_reduce(y, {async = true}), dist.all_gather(y, {async = true}),
        dist.all_reduce(x, {async = true})}
      same(wanted[1], handles[3]:wait())
      same(wanted[2], handles[2]:wait():to("cpu"))
      same(wanted[1], handles[1]:wait():to("cpu"))
    ]])
  end)

  it("pass gradients", function()
    support.ranks(2, [[
      local device = "fake:" .. rank
      local function grad(where)
        local x = lt.full({2, 2}, rank + 1.0):to(where):requires_grad_()
        local all = dist.all_gather(x:pow(2))
        dist.all_reduce((all * (rank + 2)):sum()):backward()
        same(where, x.grad.device)
        return x.grad:to("cpu")
      end
      same(grad("cpu"), grad(device))
    ]])
  end)

  it("give tables of tensors back where they were", function()
    support.ranks(2, TWO .. [[
      local sent = {dist.send({y}, 1 - rank, {async = true}),
        dist.send(y, 1 - rank, {async = true})}
      same("cpu", dist.recv(1 - rank)[1].device)
      local into = lt.zeros(5, 3, {dtype = "f64"}):to(device)
      dist.recv(into, {from = 1 - rank})
      same(device, into.device)
      same(dist.all_gather(x)[2 - rank], into:to("cpu"))
      local gathered = require "ltrain.dist.gather_tree"({a = y, n = 3}, {})
      same(device, gathered.a.device)
      same(dist.all_gather(x), gathered.a:to("cpu"))
    ]])
  end)

  it("report how ranks disagree", function()
    local out = support.fails [[
      dist.launch(2, function(rank)
        dist.all_reduce(lt.ones(rank + 2):to("fake"))
      end)
    ]]
    assert.matches("rank 0: all_reduce sum %[2%] f32 .-at script.lua:%d+; rank 1: all_reduce sum "
      .. "%[3%] f32", out)
  end)

  it("give values of all ranks with their tensors where each rank is", function()
    local body <const> = TWO .. [[
      local gather_values = require "ltrain.dist.gather_values"
      local function value_of(r, where)
        local t = lt.arange(6 + r):to(where)
        return {n = r, t = t, [3] = {t:to "f32" * 0.5, t:gt(2), "text", {}}, own = lt.ones(r)}
      end
      local all = gather_values(value_of(rank, device))
      same(dist.world_size(), #all)
      for r, got in ipairs(all) do
        local wanted = value_of(r - 1, "cpu")
        same(device, got.t.device)
        same("cpu", got.own.device)
        same({wanted.n, wanted.t, wanted[3][1], wanted[3][2], wanted[3][3], wanted.own},
          {got.n, got.t:to "cpu", got[3][1]:to "cpu", got[3][2]:to "cpu", got[3][3], got.own})
        same(0, #got[3][4])
      end
      local mine = {t = rank ~= 1 and lt.full({2}, rank):to(device) or nil}
      all = gather_values(mine)
      same(lt.full({2}, 2), all[3].t)
      same(nil, all[2].t)
      same("cpu", all[1].t.device)
      same(true, mine.t == nil or mine.t.device == device)
      all = gather_values {lt.ones(2):to "fake:0", lt.zeros(1):to "fake:1"}
      same(lt.ones(2), all[3][1])
      same(3, gather_values("plain") and #gather_values(rank))
    ]]
    local out = support.ranks(3, body)
    if NAME == "fake" then
      assert.matches("no comm backend transfers", out)
      out = support.passes(REGISTER:gsub("^lt%.", "")
        .. "dist.launch(3, function(rank)" .. body .. " end)")
    end
    assert.not_matches("no comm backend transfers", out)
  end)

  it("work in a group of one", function()
    support.passes [[
      local x = lt.randn(3):to("fake")
      for _, name in ipairs {"all_reduce", "broadcast", "all_reduce_"} do
        same(x:to("cpu"), dist[name](x):to("cpu"))
      end
      same({1, 3}, dist.all_gather(x).shape)
      same(x:to("cpu"), dist.reduce_scatter(x, {op = "mean"}):to("cpu"))
    ]]
  end)
end)

local trained_there <const> = trained.with [[
local sha256 = require "ltrain.c".runtime.sha256
local place
lt.seed(3)
local Net = lt.Module:extend("Net")
function Net:init()
  self.first, self.norm, self.second = lt.nn.Linear(4, 8), lt.nn.BatchNorm2d(8), lt.nn.Linear(8, 2)
  self.accuracy, self.f1 = lt.metrics.Accuracy(), lt.metrics.F1()
  self.auroc = lt.metrics.AUROC()
end
function Net:forward(x)
  local hidden = self.norm(self.first(x):reshape{-1, 8, 1, 1}):relu():reshape{-1, 8}
  return self.second(hidden)
end
function Net:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1]), batch[2])
  self:log("loss", loss, {on_epoch = true})
  return loss
end
function Net:validation_step(batch)
  local y = self(batch[1])
  self.accuracy:update(y, batch[2])
  self.f1:update(y:argmax(2), batch[2])
  self.auroc:update(y:softmax(2):select(2, 2), batch[2])
  self:log("acc", self.accuracy)
  self:log("f1", self.f1)
  self:log("auroc", self.auroc)
  self:log("val_loss", lt.cross_entropy(y, batch[2]))
end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-2}) end
local x = lt.randn(64, 4)
local data = lt.data.TensorDataset(x, x:sum(2):gt(0):to("i64"))
local function loader(size, shuffle)
  return lt.data.DataLoader(data, {batch_size = size, shuffle = shuffle})
end
local function on(o)
  if o.deterministic == nil then o.deterministic = true end -- links have orders of their own
  o.accelerator = {device = function(_, rank)
    return place == "cpu" and "cpu" or place .. ":" .. rank
  end}
  return trainer(o)
end
local function show(net, t)
  local sums = {}
  for name, p in pairs(net:state_dict()) do
    sums[#sums + 1] = name .. " " .. sha256 {p:to("cpu")}
  end
  table.sort(sums)
  print(table.concat(sums, "\n"))
  for _, name in ipairs {"loss_epoch", "acc", "f1", "auroc", "val_loss"} do
    local value = t.callback_metrics[name]
    print(name, value and ("%a"):format(value))
  end
end
]]

local scripts <const> = {
  run = function(n, script) return trained_there.run(n, there(script)) end,
  output = function(n, script) return trained_there.output(n, there(script)) end,
}

-- What the script prints on the CPU. GPUs add in another order than it: there, where no link moves
-- bytes between them.
local function print_on_host(n, script)
  if NAME == "fake" then return scripts.output(n, "place = 'cpu' " .. script) end
  local backends = os.getenv "LTRAIN_BACKENDS" .. "/../without_nccl"
  local out, err = trained_there.output(n, there("place = 'fake' " .. script),
    { LTRAIN_BACKENDS = backends })
  assert.matches("no comm backend transfers memory of cuda", err)
  return out
end

-- What the script prints where its Trainers run on the host, and on fake devices: the same.
local function same_on_devices(n, script)
  local wanted = print_on_host(n, script)
  assert.not_equal("", wanted)
  local out, err = scripts.output(n, "place = 'fake' " .. script)
  assert.equal(wanted, out)
  if NAME ~= "fake" then assert.not_matches("no comm backend transfers", err) end
end

describe("a fit of ranks on devices", function()
  for _, n in ipairs { 2, 4 } do
    it(("has the bits of one of %d ranks on the CPU"):format(n), function()
      same_on_devices(n, [[
        local net, t = Net(), on {max_epochs = 2, accumulate_grad_batches = 2}
        t:fit(net, loader(16 // n, true), loader(5))
        show(net, t)
      ]])
    end)
  end

  it("gives each rank its own device", function()
    local out = scripts.output(2, [[
      place = "fake"
      local net, t = Net(), on {max_steps = 1}
      function net:on_fit_end()
        local all = lt.dist.all_gather(net.device)
        if lt.dist.rank() == 0 then print(table.concat(all, " ")) end
      end
      t:fit(net, loader(8))
    ]])
    assert.equal(there "fake:0 fake:1\n", out)
  end)

  it("shares gradients through hooks, in bf16 and in small buckets", function()
    for _, options in ipairs { "bucket_cap_mb = 1e-4", "ddp_comm_hook = 'bf16'",
      "ddp_comm_hook = function(b) return lt.dist.all_reduce_(b) end" } do
      same_on_devices(2, ([[
        local net = Net()
        local t = on {max_steps = 4, strategy = lt.strategies.DDP {%s}}
        t:fit(net, loader(8))
        show(net, t)
      ]]):format(options))
    end
  end)

  it("shards the optimizer's state there, too", function()
    same_on_devices(2, [[
      local net, t = Net(), on {max_steps = 4, strategy = "zero1"}
      t:fit(net, loader(8))
      show(net, t)
    ]])
  end)

  it("has the same bits on every number of ranks with deterministic = 'world'", function()
    local script <const> = [[
      place = "fake"
      local net, t = Net(), on {max_epochs = 1, deterministic = "world"}
      t:fit(net, lt.data.DataLoader(data, {global_batch_size = 16, shuffle = true}))
      show(net, t)
    ]]
    local wanted = scripts.output(1, script)
    assert.equal(wanted, (scripts.output(2, script)))
    assert.equal(wanted, (scripts.output(4, script)))
  end)

  it("notices replicas that differ", function()
    local status, _, err = scripts.run(2, [[
      place = "fake"
      local net, t = Net(), on {max_steps = 60, max_epochs = 4}
      function net:on_train_batch_end(_, _, i)
        if i == 3 and lt.dist.rank() == 1 then
          lt.allow_update(function() net.second.bias:add_(1e-3) end)
        end
      end
      t:fit(net, loader(2))
    ]])
    assert.equal(1, status)
    assert.matches("second.bias", err)
  end)

  it("validates, tests and predicts", function()
    same_on_devices(2, [[
      local net, t = Net(), on {}
      Net.test_step = Net.validation_step
      function net:predict_step(batch) return self(batch[1]) end
      local a = t:validate(net, loader(3), {verbose = false})[1]
      local b = t:test(net, loader(7), {verbose = false})[1]
      local outputs = t:predict(net, loader(4))
      if lt.dist.rank() > 0 then return end -- ranks that stay go on, without results
      print(("%a %a %a"):format(a.val_loss, a.acc, b.val_loss),
        sha256 {lt.cat(outputs, 1):to("cpu")})
    ]])
  end)
end)

if NAME ~= "fake" then return end

describe("a link between fake devices", function()
  it("moves what collectives are given, with the bits of the host's", function()
    local out = support.passes(REGISTER:gsub("^lt%.", "") .. "dist.launch(3, function(rank)" .. TWO
      .. [[
      local part = dist.split(rank == 1 and 0 or 1)
      for k = 1, 3 do
        both("all_reduce")
        both("all_reduce", {op = "mean"})
        both("all_reduce", {op = "max", group = part})
        both("broadcast", {from = 2})
        both("all_gather")
        both("gather", {to = 1})
      end
      local sent = dist.send({y, x, rank}, (rank + 1) % 3, {async = true})
      local got = dist.recv((rank + 2) % 3, {device = device})
      sent:wait()
      same({device, device, (rank + 2) % 3}, {got[1].device, got[2].device, got[3]})
      same(dist.all_gather(x)[got[3] + 1], got[1]:to("cpu"))
      same(got[1]:to("cpu"), got[2]:to("cpu"))
      x, y = x:narrow(1, 1, rank + 1), y:narrow(1, 1, rank + 1)
      both("all_gather", {cat = true})
      x, y = lt.arange(12):reshape{6, 2} * 0.1, (lt.arange(12):reshape{6, 2} * 0.1):to(device)
      both("reduce_scatter", {op = "mean"})
      end)
    ]])
    assert.not_matches("no comm backend transfers", out)
  end)

  it("trains to the bits of the CPU, and nothing is staged", function()
    local script <const> = [[
      local net, t = Net(), on {max_epochs = 1, accumulate_grad_batches = 2}
      t:fit(net, loader(8, true), loader(5))
      show(net, t)
    ]]
    local wanted = scripts.output(2, "place = 'cpu' " .. script)
    local out, err = scripts.output(2, REGISTER .. "place = 'fake' " .. script)
    assert.equal(wanted, out)
    assert.not_matches("no comm backend transfers", err)
  end)

  it("is distinguished from ranks whose tensors are on the host", function()
    local out = support.fails(REGISTER:gsub("^lt%.", "") .. [[
      dist.launch(2, function(rank)
        local x = lt.ones(3)
        dist.all_reduce(rank == 1 and x:to "fake" or x)
      end)
    ]])
    assert.matches("rank 0: all_reduce sum %[3%] f32 at [^;]*; rank 1: all_reduce sum %[3%] f32 "
      .. "between devices", out)
  end)

  it("cannot join ranks, and is refused where it cannot be opened", function()
    local out = support.fails(REGISTER:gsub("^lt%.", "") .. [[
      lt.clusters.register("odd", {comm = "files_device",
        detect = function() return "here" end, world_size = function() return 2 end,
        global_rank = function() return 0 end, local_rank = function() return 0 end,
        main_address = function() return "/tmp" end, main_port = function() return nil end})
      error((select(2, lt.clusters.join())))
    ]])
    assert.matches("files_device: transfers device memory %(fake%) only: choose the comm that "
      .. "connects the ranks' processes", out)
    out = support.fails "dist.register_comm('files_device', '/nowhere/x.so')"
    assert.matches("files_device: cannot open /nowhere/x.so", out)
  end)
end)
