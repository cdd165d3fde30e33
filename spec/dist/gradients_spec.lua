-- spec/dist/gradients_spec.lua: gradients on several ranks are those of one process.
--
-- Each script fits (or steps) on ranks, computes in its parent what one process gives for the same
-- samples, and compares: what it raises fails the spec.
-- tags: half, sampled, slow
local lt = require "ltrain"
local over = require "spec.dist.over"
local support = require "spec.dist.support"
local trained = require "spec.dist.trained"

-- `fit(net, n, batches, options)` runs batches[rank + 1] on n ranks; `gradients(net, loss)` is a
-- copy of one process's gradients; `close` compares lists of tensors.
local PRELUDE <const> = trained.prelude .. [[
local Net = lt.Module:extend("Net")
function Net:init()
  self.first, self.second = lt.nn.Linear(3, 5), lt.nn.Linear(5, 2)
  self:to("f64")
end
function Net:forward(x) local hidden = self.first(x):tanh() return self.second(hidden) end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local function fit(net, n, batches, o)
  o = o or {}
  o.devices, o.use_distributed_sampler, o.log_every_n_steps = n, false, 0
  local t = trainer(o)
  t:fit(net, function()
    local k, own = 0, batches[lt.dist.rank() + 1]
    return function() k = k + 1 return own[k] end
  end)
  return t
end
local function copies(list)
  local out = {}
  for i, p in ipairs(list) do out[i] = p:detach():to("cpu"):clone() end
  return out
end
local function gradients(net, loss)
  net:zero_grad()
  loss:backward()
  local out = {}
  for i, p in ipairs(net:parameters()) do out[i] = p.grad:clone() end
  net:zero_grad()
  return out
end
local function close(wanted, got, tolerance)
  for i, w in ipairs(wanted) do
    local off = (w:to "cpu" - got[i]:to "cpu"):abs():max():item()
    if not (off <= tolerance) then error(("%d: off by %g"):format(i, off), 2) end
  end
end
-- The weights after a step of SGD with these gradients.
local function stepped(weights, grads)
  local out = {}
  for i, w in ipairs(weights) do out[i] = w - grads[i] * 0.1 end
  return out
end
lt.seed(7)
local x = lt.randn(8, 3, {dtype = "f64"})
local y = lt.tensor{0, 1, 0, 1, 1, 0, 0, 1}
local function part(from, n) return {x:narrow(1, from, n), y:narrow(1, from, n)} end
]]

local WAYS <const> = { "shm", "mpi", "ucx", "two hosts" }

local function passes(code) return support.passes(PRELUDE .. code) end

-- What the script's `net` is after it has run on n ranks.
local function state_of(way, n, script)
  local file = os.tmpname()
  local status, out = support.over(n > 1 and way or "shm", n, PRELUDE
    .. ("n = %d local net\n"):format(n) .. script
    .. (" if dist.rank() == 0 then lt.save(%q, net:state_dict()) end"):format(file))
  assert.equal(0, status, out)
  local state = lt.load(file)
  os.remove(file)
  return state
end

-- Whether two states differ by no more; the name of what does.
local function close(a, b, tolerance)
  for name, tensor in pairs(a) do
    local off = (tensor - b[name]):abs():max():item()
    if off > tolerance or off ~= off then return false, ("%s is off by %g"):format(name, off) end
  end
  return true
end

-- The script's `net` is the same on one process and on any of these numbers of ranks.
local function same_states(way, ranks, tolerance, script)
  local one = state_of("shm", 1, script)
  for _, n in ipairs(ranks) do assert(close(one, state_of(way, n, script), tolerance)) end
end

do
  local way -- of the case that runs
  local function it(name, fn) -- luacheck: ignore
    over(WAYS, name, function(its_way)
      way = its_way
      fn()
    end)
  end
  local function passes(code) -- luacheck: ignore
    local status, out = support.over(way, 2, PRELUDE .. code)
    assert.equal(0, status, out)
  end

  describe("gradients of 2 ranks", function()
    it("weigh batches of 5 and 3 by their samples", function()
      passes [[
        local net = Net()
        function net:training_step(b) return lt.cross_entropy(self(b[1]), b[2]) end
        local before = copies(net:parameters())
        local wanted = stepped(before, gradients(net, lt.cross_entropy(net(x), y)))
        fit(net, 2, {{part(1, 5)}, {part(6, 3)}})
        close(wanted, net:parameters(), 1e-14)
      ]]
    end)

    it("go through all_gather with cat in a loss of all samples", function()
      passes [[
        local net = Net()
        local function contrast(z) local s = z:matmul(z:t()) return (s - s:mean()):pow(2):mean() end
        function net:training_step(b)
          return contrast(lt.dist.all_gather(self(b[1]), {cat = true}))
        end
        local before = copies(net:parameters())
        local wanted = stepped(before, gradients(net, contrast(net(x))))
        fit(net, 2, {{part(1, 5)}, {part(6, 3)}})
        close(wanted, net:parameters(), 1e-12)
      ]]
    end)

    it("come back to a rank whose loss does not use what it gathered", function()
      passes [[
        local net = Net()
        function net:training_step(b)
          local all = lt.dist.all_gather(self(b[1]), {cat = true})
          if lt.dist.rank() == 1 then return nil end
          return all:pow(2):mean()
        end
        local before = copies(net:parameters())
        local wanted = stepped(before, gradients(net, net(x):pow(2):mean()))
        fit(net, 2, {{part(1, 5)}, {part(6, 3)}})
        close(wanted, net:parameters(), 1e-12)
      ]]
    end)

    it("go through two collectives that ranks use in opposite order", function()
      passes [[
        local net = Net()
        function net:training_step(b)
          local h = self(b[1])
          local a = lt.dist.all_gather(h, {cat = true})
          local s = lt.dist.all_reduce(h:sum(1))
          if lt.dist.rank() == 0 then return a:pow(2):mean() + s:pow(2):mean() end
          return s:pow(2):mean() + a:pow(2):mean()
        end
        local before = copies(net:parameters())
        local h = net(x)
        local wanted = stepped(before, gradients(net, h:pow(2):mean() + h:sum(1):pow(2):mean()))
        fit(net, 2, {{part(1, 4)}, {part(5, 4)}})
        close(wanted, net:parameters(), 1e-12)
      ]]
    end)

    it("are reduced once a window, with a rank that has nothing left", function()
      passes [[
        local net = Net()
        function net:training_step(b) return lt.cross_entropy(self(b[1]), b[2]) end
        -- Windows of 3 over 4 batches: rank 1 has a short one, then none.
        local before = copies(net:parameters())
        local first = lt.cat({x:narrow(1, 1, 2), x:narrow(1, 3, 2), x:narrow(1, 5, 2),
          x:narrow(1, 7, 2), x:narrow(1, 1, 1)}, 1)
        local labels = lt.cat({y:narrow(1, 1, 2), y:narrow(1, 3, 2), y:narrow(1, 5, 2),
          y:narrow(1, 7, 2), y:narrow(1, 1, 1)}, 1)
        local wanted = stepped(before, gradients(net, lt.cross_entropy(net(first), labels)))
        do
          local _ <close> = lt.allow_update()
          for i, p in ipairs(net:parameters()) do p:copy_(wanted[i]) end
        end
        local second = stepped(wanted, gradients(net, lt.cross_entropy(net(x:narrow(1, 4, 2)),
          y:narrow(1, 4, 2))))
        do
          local _ <close> = lt.allow_update()
          for i, p in ipairs(net:parameters()) do p:copy_(before[i]) end
        end
        local t = fit(net, 2, {{part(1, 2), part(3, 2), part(5, 2), part(4, 2)},
          {part(7, 2), part(1, 1)}}, {accumulate_grad_batches = 3})
        same(2, t.global_step)
        close(second, net:parameters(), 1e-14)
      ]]
    end)

    it("are added for tied weights, and left out for a branch that none used", function()
      passes [[
        local net = Net()
        net.tied, net.idle = net.first, lt.nn.Linear(3, 3):to("f64")
        function net:training_step(b)
          return lt.cross_entropy(self.second(self.first(b[1]) + self.tied(b[1]:neg())), b[2])
        end
        local before = copies(net:parameters())
        local loss = lt.cross_entropy(net.second(net.first(x) + net.tied(x:neg())), y)
        loss:backward()
        local wanted = {}
        for i, p in ipairs(net:parameters()) do
          wanted[i] = p.grad and before[i] - p.grad * 0.1 or before[i]
        end
        net:zero_grad()
        fit(net, 2, {{part(1, 4)}, {part(5, 4)}})
        close(wanted, net:parameters(), 1e-14)
        same(nil, net.idle.weight.grad)
      ]]
    end)

    it("are the same in buckets of any size, through a hook and as bf16", function()
      passes [[
        local before = copies(Net():parameters())
        local function run(options)
          local net = Net()
          for i, p in ipairs(net:parameters()) do net:parameters()[i]:detach():copy_(before[i]) end
          function net:training_step(b) return lt.cross_entropy(self(b[1]), b[2]) end
          fit(net, 2, {{part(1, 4)}, {part(5, 4)}}, {strategy = lt.strategies.DDP(options)})
          return copies(net:parameters())
        end
        local wanted = run {}
        close(wanted, run {bucket_cap_mb = 1e-5}, 0)
        local function hook(flat) return lt.dist.all_reduce(flat) * 1 end
        close(wanted, run {ddp_comm_hook = hook}, 0)
        local rough = run {ddp_comm_hook = "bf16"}
        close(wanted, rough, 1e-3)
        assert(not pcall(close, wanted, rough, 1e-9))
      ]]
    end)
  end)
end

describe("manual optimization on 2 ranks", function()
  over(WAYS, "shares the gradients of each optimizer at its step, as in a GAN,", function(way)
    same_states(way, { 2 }, 1e-13, [[
      local Gan = lt.Module:extend("Gan")
      function Gan:init()
        self.g, self.d = lt.nn.Linear(3, 3):to("f64"), lt.nn.Linear(3, 1):to("f64")
        self.automatic_optimization = false
      end
      local function losses(self, b)
        local fake = self.g(b)
        return self.d(fake:detach()):pow(2):mean(), self.d(b):sub(1):pow(2):mean(), fake
      end
      function Gan:configure_optimizers()
        return {lt.optim.SGD(self.g:parameters(), {lr = 0.1}),
          lt.optim.SGD(self.d:parameters(), {lr = 0.1})}
      end
      function Gan:training_step(b)
        local og, od = table.unpack(self:optimizers())
        local of_fake, of_real, fake = losses(self, b)
        self:toggle_optimizer(od)
        od:zero_grad()
        self:manual_backward(of_fake)
        self:manual_backward(of_real)
        od:step()
        self:untoggle_optimizer()
        self:toggle_optimizer(og)
        og:zero_grad()
        self:manual_backward(self.d(fake):sub(1):pow(2):mean())
        self:clip_gradients(og, 0.05)
        og:step()
        self:untoggle_optimizer()
      end
      net = Gan()
      local t = fit(net, n, n == 1 and {{x, x:neg()}} or {{x:narrow(1, 1, 5),
        x:narrow(1, 1, 4):neg()}, {x:narrow(1, 6, 3), x:narrow(1, 5, 4):neg()}})
      same(4, t.global_step)
    ]])
  end)

  it("needs data on all ranks at each step", function()
    local out = support.fails(PRELUDE .. [[
      local net = Net()
      net.automatic_optimization = false
      function net:training_step(b)
        local o = self:optimizers()
        o:zero_grad()
        self:manual_backward(lt.cross_entropy(self(b[1]), b[2]))
        o:step()
      end
      fit(net, 2, {{part(1, 2), part(1, 2)}, {part(3, 2)}})
    ]])
    assert.matches("rank 1 has no data left while others have, and manual optimization cannot "
      .. "step without it", out)
  end)
end)

describe("50 steps with a short last batch", function()
  local function same(way, ranks, dtype, tolerance)
    same_states(way, ranks, tolerance, ([[
      local dtype = %q
      lt.seed(11)
      net = Net()
      net:to(dtype)
      function net:training_step(b) return lt.cross_entropy(self(b[1]), b[2]) end
      local x = lt.randn(75, 3):to(dtype)
      local data = lt.data.TensorDataset(x, x:sum(2):gt(0):to("i64"))
      local t = trainer {devices = n, max_epochs = 10}
      t:fit(net, lt.data.DataLoader(data, {global_batch_size = 16, shuffle = true}))
      same(50, t.global_step)
    ]]):format(dtype))
  end

  for dtype, tolerance in pairs { f64 = 1e-10, f32 = 1e-4 } do
    it(("give the same %s weights on 1, 2 and 4 ranks"):format(dtype), function()
      same("shm", { 2, 4 }, dtype, tolerance)
    end)
  end

  over({ "mpi", "two hosts" }, "give the same weights on 4 ranks", function(way)
    same(way, { 4 }, "f64", 1e-10)
  end)
end)

describe("lt.dist.ddp", function()
  it("shares the gradients of a loop of one's own, weighted", function()
    passes [[
      local net = Net()
      local before = copies(net:parameters())
      local wanted = gradients(net, lt.cross_entropy(net(x), y))
      lt.dist.launch(2, function(rank)
        if rank == 1 then
          local _ <close> = lt.no_grad()
          for _, p in ipairs(net:parameters()) do p:zero_() end
        end
        local shared = lt.dist.ddp(net)
        close(before, net:parameters(), 0)
        local b = rank == 0 and part(1, 5) or part(6, 3)
        shared:zero_grad()
        shared:backward(lt.cross_entropy(shared(b[1]), b[2]), b[1].shape[1])
        same(8.0, shared:sync())
        for i, p in ipairs(shared:parameters()) do close({wanted[i]}, {p.grad}, 1e-14) end
        shared:zero_grad()
        same(0.0, shared:sync())
        same(nil, net.first.weight.grad)
      end)
    ]]
  end)

  it("reduces gradients while backward runs", function()
    passes [[
      lt.dist.launch(2, function(rank)
        local net = Net()
        local weight, mean = net.second.weight, nil
        local b = rank == 0 and part(1, 5) or part(6, 3)
        local function loss() return lt.cross_entropy(net(b[1]), b[2]) end
        net:zero_grad();
        (loss() * b[1].shape[1]):backward()
        local own = weight.grad:clone()
        local shared = lt.dist.ddp(net, {bucket_cap_mb = 1e-5})
        net:zero_grad()
        shared:backward(loss())
        shared:sync() -- the order of gradients is known now
        net:zero_grad()
        -- The last layer's gradient is complete when that of the first arrives: both ranks are in
        -- their backward then.
        net.first.weight:register_hook(function()
          local deadline = os.time() + 10
          repeat mean = weight.grad:clone() -- an operation moves on what is under way
          until not mean:equal(own) or os.time() > deadline
          assert(not mean:equal(own), "not reduced yet")
        end)
        shared:backward(loss(), b[1].shape[1])
        same(8.0, shared:sync())
        assert(weight.grad:equal(mean))
      end)
    ]]
  end)

  it("accumulates within no_sync, and wants it there", function()
    passes [[
      local net = Net()
      local wanted = gradients(net, lt.cross_entropy(net(x), y))
      lt.dist.launch(2, function(rank)
        local shared = lt.dist.ddp(net)
        local function back(from, n)
          local b = part(from, n)
          shared:backward(lt.cross_entropy(shared(b[1]), b[2]), n)
        end
        for step = 1, 3 do
          shared:zero_grad()
          if rank == 0 then
            do
              local _ <close> = shared:no_sync()
              back(1, 2)
              back(3, 1)
            end
            back(4, 2)
            assert(error_of(back, 4, 2):find("the gradients of the call before are being reduced: "
              .. "call sync() after the last backward of a step, and those before it within `local "
              .. "_ <close> = net:no_sync()`", 1, true))
          else
            local _ <close> = shared:no_sync() -- reduced at the step then
            back(6, 3)
          end
          shared.weight = rank == 0 and 5 or 3 -- without what was refused
          same(8.0, shared:sync())
          for i, p in ipairs(shared:parameters()) do close({wanted[i]}, {p.grad}, 1e-14) end
        end
      end)
    ]]
  end)

  it("gives parameters that some rank used their mean, others none, in any graph", function()
    passes [[
      lt.dist.launch(2, function(rank)
        local net = Net()
        net.extra, net.idle = lt.nn.Linear(3, 2):to "f64", lt.nn.Linear(3, 2):to "f64"
        net.idle.bias:requires_grad_(false)
        local shared = lt.dist.ddp(net, {bucket_cap_mb = 1e-5})
        for step = 1, 4 do
          shared:zero_grad()
          if step ~= 3 or rank == 0 then
            local loss = net(x):pow(2):mean()
            if rank == step % 2 then loss = loss + net.extra(x):sum() end
            shared:backward(loss)
          end
          same(step == 3 and 1.0 or 2.0, shared:sync())
          local scale = step == 3 and (step % 2 == 0 and 8 or 0) or 4
          local bias = net.extra.bias
          if scale > 0 then close({bias:detach() * 0 + scale}, {bias.grad}, 0) end
          same(scale == 0, net.extra.bias.grad == nil)
          same(nil, net.idle.weight.grad)
          same(nil, net.idle.bias.grad)
        end
        net.first.bias:requires_grad_(false) -- other buckets from now on
        shared:zero_grad()
        shared:backward(net(x):pow(2):mean())
        same(2.0, shared:sync())
        same(nil, net.first.bias.grad)
        assert(net.second.bias.grad)
      end)
    ]]
  end)

  it("names a hook that does not give the sum of buffers", function()
    passes [[
      local function step(hook)
        local shared = lt.dist.ddp(Net(), {comm_hook = hook})
        shared:backward(lt.cross_entropy(shared(x), y))
        return error_of(shared.sync, shared)
      end
      assert(step(function() end):find("comm_hook: must return the sum of all ranks' buffers, "
        .. "[32] f64: got nil", 1, true))
      local short = step(function(flat) return flat:narrow(1, 1, 3) end)
      assert(short:find("got a tensor [3] f64", 1, true))
      assert(step(function(flat) return flat:to "f32" end):find("got a tensor [32] f32", 1, true))
    ]]
  end)

  it("refuses what is not a module, and options that it does not know", function()
    passes [[
      same("script.lua:N: dist.ddp: needs a module: got 3",
        (error_of(lt.dist.ddp, 3):gsub(":%d+:", ":N:")))
      assert(error_of(lt.dist.ddp, Net(), {bucket = 1}):find "unknown option 'bucket'")
      assert(error_of(lt.dist.ddp, Net(), {comm_hook = "x"}):find "must be a function, an obj")
    ]]
  end)
end)

describe("sync_batchnorm", function()
  local SCRIPT <const> = [[
    local Conv = lt.Module:extend("Conv")
    function Conv:init()
      self.conv, self.norm = lt.nn.Conv2d(1, 3, 3), lt.nn.BatchNorm2d(3)
      self:to("f64")
    end
    function Conv:training_step(b) return self.norm(self.conv(b)):tanh():pow(2):mean() end
    Conv.configure_optimizers = Net.configure_optimizers
    net = Conv()
    local images = lt.randn(8, 1, 5, 5, {dtype = "f64"})
    fit(net, n, n == 1 and {{images}} or {{images:narrow(1, 1, 5)}, {images:narrow(1, 6, 3)}},
      {sync_batchnorm = %s})
  ]]

  over(WAYS, "takes the statistics of all ranks' samples: the same as one process", function(way)
    same_states(way, { 2 }, 1e-13, SCRIPT:format "true")
  end)

  it("is not what ranks do without", function()
    local script = SCRIPT:format "false"
    assert.is_false((close(state_of("shm", 1, script), state_of("shm", 2, script), 1e-6)))
  end)
end)
