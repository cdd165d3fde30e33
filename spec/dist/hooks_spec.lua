-- spec/dist/hooks_spec.lua: lt.dist.hooks: gradients that are compressed between the ranks.
-- tags: slow, third
local lt = require "ltrain"
local support = require "spec.dist.support"
local trained = require "spec.dist.trained"

local error_of = require("spec.trainer.tiny").error_of

local HOOKS <const> = { "powerSGD", "topk", "random_k", "int8", "sign" }

-- A net in f64; step(ddp, n): gradients of random samples of this rank, which sync reduces. Returns
-- by parameter the mean of the ranks' gradients, and what sync has made of it.
local NET <const> = [[
local Net = lt.Module:extend("Net")
function Net:init()
  self.first = lt.nn.Linear(20, 30)
  self.second = lt.nn.Linear(30, 10)
  self.third = lt.nn.Conv2d(1, 2, 3)
  self:to("f64")
end
function Net:forward(x) local hidden = self.first(x):tanh() return self.second(hidden) end
local OPTIONS = {powerSGD = {start = 0, rank = 2}, topk = {ratio = 0.1}, random_k = {ratio = 0.1}}
local function make(name, more)
  local o = {}
  for k, v in pairs(OPTIONS[name] or {}) do o[k] = v end
  for k, v in pairs(more or {}) do o[k] = v end
  return lt.dist.hooks[name](o)
end
local function step(ddp, n)
  lt.seed(10 * n + dist.rank())
  local net, rows = ddp.module, 4 + dist.rank()
  ddp:zero_grad()
  ddp:backward(net(lt.randn(rows, 20, {dtype = "f64"})):square():mean(), rows)
  local means = {}
  local total = dist.all_reduce(rows)
  for i, p in ipairs(net:parameters()) do
    means[i] = p.grad and dist.all_reduce(p.grad) / total
  end
  ddp:sync()
  return means
end
local function gap(a, b) return (a - b):abs():max():item() end
local function alike(net)
  for _, p in ipairs(net:parameters()) do
    local all = dist.all_gather(p.grad and lt.hash(p.grad) or "none")
    for _, hash in ipairs(all) do if hash ~= all[1] then return false end end
  end
  return true
end
]]

local function ranks(n, body)
  return support.passes(NET .. ("dist.launch(%d, function(rank)\n%s\nend)"):format(n, body))
end

describe("a communication hook", function()
  for _, name in ipairs(HOOKS) do
    it("sends with residuals all that there is: " .. name, function()
      ranks(3, ([[
        local hook = make("%s")
        local ddp = dist.ddp(Net(), {comm_hook = hook})
        local wanted, sent, rough = {}, {}, 0
        for n = 1, 5 do
          local means = step(ddp, n)
          assert(alike(ddp.module))
          for i, p in ipairs(ddp.module:parameters()) do
            if means[i] then
              rough = math.max(rough, gap(means[i], p.grad))
              wanted[i] = wanted[i] and wanted[i] + means[i] or means[i]
              sent[i] = sent[i] and sent[i] + p.grad or p.grad:clone()
            else
              same(nil, p.grad) -- no rank has used it
            end
          end
        end
        local saved = hook:state_dict(ddp.module)
        local i = 0
        for name in ddp.module:named_parameters() do
          i = i + 1
          local own = saved.ranks[tostring(rank)][name]
          same(own == nil, wanted[i] == nil)
          if own then assert(gap(wanted[i], sent[i] + dist.all_reduce(own)) < 1e-12, name) end
        end
        assert(rough > 1e-5) -- it does compress
      ]]):format(name))
    end)
  end

  it("of 16 bits rounds the parts of the mean, and their sums", function()
    ranks(2, [[
      local function of(hook)
        local net = lt.nn.Linear(3, 1)
        local ddp = dist.ddp(net, {comm_hook = hook})
        -- The mean of 1 and 1 + 2^-9, whose halves f16 can hold, and bf16 only one of.
        ddp:backward((net.weight * (1 + rank * 2 ^ -9)):sum())
        ddp:sync()
        return net.weight.grad[1][1]:item()
      end
      same(1 + 2 ^ -10, of(nil))
      same(1 + 2 ^ -10, of("fp16"))
      same(1.0, of("bf16"))
      same(65504 * 4.0, (function()
        local net = lt.nn.Linear(3, 1)
        local ddp = dist.ddp(net, {comm_hook = "bf16"})
        ddp:backward((net.weight * 262144):sum())
        ddp:sync()
        return net.weight.grad[1][1]:item() - 128
      end)())
    ]])
  end)

  it("says on all ranks that an element is not finite, and keeps its state as it was", function()
    for _, name in ipairs(HOOKS) do
      for _, value in ipairs { "math.huge", "-math.huge", "0 / 0" } do
        ranks(2, ([[
          local hook = make("%s", {start = 0})
          local ddp = dist.ddp(Net(), {comm_hook = hook})
          step(ddp, 1)
          local before, net = hook:state_dict(ddp.module), ddp.module
          local kept = {}
          for key, value in pairs(before.ranks[tostring(rank)]) do kept[key] = value:clone() end
          ddp:zero_grad()
          ddp:backward(net(lt.randn(4, 20, {dtype = "f64"})):square():mean())
          if rank == 1 then net.first.weight.grad[3][4]:fill_(%s) end
          ddp:sync()
          assert(not net.first.weight.grad:isfinite():all():item(), "finite")
          assert(alike(net))
          local after = hook:state_dict(net)
          for key, value in pairs(kept) do
            same(0.0, gap(value, after.ranks[tostring(rank)][key]))
          end
          same(1, after.counts["first.weight"])
          step(ddp, 2)
          for _, p in ipairs(net:parameters()) do
            assert(not p.grad or p.grad:isfinite():all():item())
          end
        ]]):format(name, value))
      end
    end
  end)

  it("gives parameters that one rank has not used their part, and new buckets their residuals",
    function()
      for _, name in ipairs(HOOKS) do
        ranks(2, ([[
          local hook = make("%s")
          local net = Net()
          local ddp = dist.ddp(net, {comm_hook = hook})
          local wanted, sent = nil, nil
          for n = 1, 4 do
            ddp:zero_grad()
            local loss = net(lt.randn(4, 20, {dtype = "f64"})):square():mean()
            -- The third layer is rank 1's in step 2, and nobody's in 1 and 3.
            if n == 2 and rank == 1 or n == 4 then
              loss = loss + net.third(lt.randn(1, 1, 5, 5, {dtype = "f64"})):square():mean()
            end
            ddp:backward(loss)
            local mean = dist.all_reduce(net.first.weight.grad) / 2
            wanted = wanted and wanted + mean or mean
            ddp:sync()
            same(n %% 2 == 1, net.third.weight.grad == nil)
            sent = sent and sent + net.first.weight.grad or net.first.weight.grad:clone()
            assert(alike(net))
          end
          local own = hook:state_dict(net).ranks[tostring(rank)]
          assert(gap(wanted, sent + dist.all_reduce(own["first.weight"])) < 1e-12)
          assert(own["third.weight"])
        ]]):format(name))
      end
    end)

  it("leaves the first `start` steps alone, and script's random numbers", function()
    ranks(2, [[
      for _, name in ipairs {"powerSGD", "topk", "random_k", "int8", "sign"} do
        local ddp = dist.ddp(Net(), {comm_hook = make(name, {start = 2})})
        for n = 1, 3 do
          local means, worst = step(ddp, n), 0
          for i, p in ipairs(ddp.module:parameters()) do
            if p.grad then worst = math.max(worst, gap(means[i], p.grad)) end
          end
          same(n <= 2, worst < 1e-14)
        end
        lt.seed(5)
        local drawn = lt.rand(1):item()
        step(ddp, 4)
        lt.seed(5)
        local hook = ddp.reducer.hook
        hook.draw(1, 2, function() return lt.rand(3) end)
        same(drawn, lt.rand(1):item())
      end
    ]])
  end)

  it("forgets what it has not sent with error_feedback = false", function()
    ranks(2, [[
      for _, name in ipairs {"powerSGD", "topk", "random_k", "int8", "sign"} do
        local hook = make(name, {error_feedback = false})
        local ddp = dist.ddp(Net(), {comm_hook = hook})
        step(ddp, 1)
        same(nil, next(hook:state_dict(ddp.module).ranks[tostring(rank)]))
      end
    ]])
  end)

  it("resumes from its state, in other buckets too, as if it had not stopped", function()
    for _, name in ipairs(HOOKS) do
      ranks(2, ([[
        local function run(first, last, saved, reversed)
          lt.seed(1)
          local net, hook = Net(), make("%s")
          if reversed then -- another order of buckets
            local own = net.parameters
            rawset(net, "parameters", function(self)
              local list, turned = own(self), {}
              for i, p in ipairs(list) do turned[#list + 1 - i] = p end
              return turned
            end)
          end
          local ddp = dist.ddp(net, {comm_hook = hook})
          if saved then hook:load_state_dict(saved, net) end
          for n = first, last do step(ddp, n) end
          return hook:state_dict(net), net.first.weight.grad:clone()
        end
        local saved, wanted = run(1, 4)
        local half = run(1, 2)
        local again, got = run(3, 4, half)
        same(0.0, gap(wanted, got))
        for key, value in pairs(saved.ranks[tostring(rank)]) do
          same(0.0, gap(value, again.ranks[tostring(rank)][key]))
        end
        same(4, again.counts["first.weight"])
        local other, turned = run(3, 4, half, true)
        same(4, other.counts["second.bias"])
        if "%s" == "powerSGD" then assert(gap(wanted, turned) < 1e-12) end
      ]]):format(name, name))
    end
  end)
end)

describe("lt.dist.hooks.powerSGD", function()
  -- PyTorch 2.15.0, made by torch_hooks.py: for each rank of the approximation the weighted sums of
  -- each parameter's mean gradient, by step.
  local WANTED <const> = {
    {
      { 1.415945946299, 1.199837238412, 2.210008488756, -0.370808619443 },
      { -4.694394823090, -0.647525313243, -0.193260713395, -1.099309309510 },
      { 0.132307103970, -1.899556078119, 4.098905807249, -0.817110090138 },
      { 9.707567947638, -1.405143745024, -1.354115011596, 0.216336377811 },
    },
    {
      { 2.831048908138, 1.199837238412, 0.382400747198, -0.370808619443 },
      { 3.370549977993, -0.647525313243, 2.684928959332, -1.099309309510 },
      { 1.608849891340, -1.899556078119, -0.295091698184, -0.817110090138 },
      { -2.941032794659, -1.405143745024, 4.378747285712, 0.216336377811 },
    },
    {
      { -0.834445358694, 1.199837238412, -1.018314727301, -0.370808619443 },
      { 1.373942036423, -0.647525313243, -1.491884623993, -1.099309309510 },
      { 12.692362454322, -1.899556078119, -0.065185689888, -0.817110090138 },
      { -11.997635539906, -1.405143745024, 0.945126325358, 0.216336377811 },
    },
  }

  it("gives PyTorch's gradients", function()
    for of, rows in ipairs(WANTED) do
      local out = ranks(2, ([[
        local SHAPES, of = {{12, 16}, {5}, {8, 3, 2, 2}, {3, 2}}, %d
        local function sines(shape, factor, offset)
          local n = 1
          for _, size in ipairs(shape) do n = n * size end
          local at = lt.arange(0, n, {dtype = "f64"})
          return (at * factor + at * at * 0.013 + offset):sin():reshape(shape)
        end
        local Made = lt.Module:extend("Made")
        function Made:init()
          for i, shape in ipairs(SHAPES) do
            self["p" .. i] = lt.parameter(lt.zeros(shape, {dtype = "f64"}))
          end
        end
        local net = Made()
        local hook = lt.dist.hooks.powerSGD {rank = of, start = 2, min_compression_rate = 1.3}
        local saved = {hook = "powerSGD", world_size = 2, counts = {}, ranks = {},
          shared = {q = {p1 = sines({16, of}, 1.7, 1), p3 = sines({12, of}, 1.7, 3)}}}
        for i = 1, #SHAPES do saved.counts["p" .. i] = 2 end
        local ddp = dist.ddp(net, {comm_hook = hook})
        hook:load_state_dict(saved, net)
        for step = 0, 3 do
          local row = {}
          for i, shape in ipairs(SHAPES) do
            net["p" .. i].grad = sines(shape, 0.61 + 0.1 * (i - 1), step + 7.3 * rank)
          end
          ddp.weight = 1.0
          ddp:sync()
          for i, shape in ipairs(SHAPES) do
            row[i] = ("%%.12f"):format((net["p" .. i].grad * sines(shape, 0.37, 0.2)):sum():item())
          end
          if rank == 0 then print(table.concat(row, " ")) end
        end
      ]]):format(of))
      local step = 0
      for line in out:gmatch "[^\n]+" do
        step = step + 1
        local i = 0
        for number in line:gmatch "%S+" do
          i = i + 1
          assert(math.abs(number - rows[step][i]) < 1e-9, ("rank %d, step %d, parameter %d: %s, "
            .. "PyTorch has %.12f"):format(of, step, i, number, rows[step][i]))
        end
        assert.equal(4, i)
      end
      assert.equal(4, step)
    end
  end)

  it("sends a matrix of low rank as it is, also one of zeros", function()
    ranks(2, [[
      local net = lt.nn.Linear(16, 12, {bias = false}):to("f64")
      local ddp = dist.ddp(net, {comm_hook = lt.dist.hooks.powerSGD {rank = 3, start = 0}})
      for n = 1, 3 do
        lt.seed(n)
        local whole = lt.randn(12, 2, {dtype = "f64"}):matmul(lt.randn(2, 16, {dtype = "f64"}))
        if n == 2 then whole:zero_() end
        net.weight.grad = whole * (rank == 0 and 3 or -1)
        ddp.weight = 1.0
        ddp:sync()
        assert(gap(whole, net.weight.grad) < 1e-12, n)
      end
    ]])
  end)

  it("sends what would not get smaller as it is", function()
    ranks(2, [[
      local net = lt.nn.Linear(3, 4)
      local ddp = dist.ddp(net, {comm_hook = lt.dist.hooks.powerSGD {start = 0}})
      ddp:backward((net.weight:square():sum() + net.bias:square():sum()) * (1 + rank))
      local wanted = dist.all_reduce(net.weight.grad) / 2
      ddp:sync()
      same(0.0, gap(wanted, net.weight.grad))
    ]])
  end)
end)

describe("names of hooks", function()
  it("are those that options take, and of classes of scripts", function()
    support.passes(NET .. [[
      local Twice = lt.dist.hooks.Hook:extend("Twice")
      function Twice:compress(x, bucket, group)
        self:all_reduce_(x, group)
        x:mul_(2)
        return lt.zeros_like(x)
      end
      lt.dist.register_comm_hook("twice", Twice)
      dist.launch(2, function(rank)
        local net = lt.nn.Linear(2, 1)
        local ddp = dist.ddp(net, {comm_hook = "twice"})
        ddp:backward(net.weight:sum())
        ddp:sync()
        same(2.0, net.weight.grad[1][1]:item())
      end)
      assert(error_of(lt.dist.register_comm_hook, "twice", Twice):find "exists already")
      assert(error_of(lt.dist.register_comm_hook, "topk", Twice):find "exists already")
      assert(error_of(lt.dist.register_comm_hook, "x", print):find "must be a class below")
    ]])
  end)

  it("and options that are wrong are refused", function()
    local hooks = lt.dist.hooks
    assert.matches("ddp_comm_hook must be a function, an object of lt.dist.hooks, or a name, "
      .. "'bf16', 'fp16', .*: got 'powersgd'; did you mean 'powerSGD'%?",
      error_of(lt.strategies.DDP, { ddp_comm_hook = "powersgd" }))
    assert.matches("ddp_comm_hook must be an object of a class below lt.dist.hooks.Hook",
      error_of(lt.strategies.DDP, { ddp_comm_hook = lt.strategies.DDP() }))
    assert.matches("dist.hooks.powerSGD: .*matrix_approximation_rank.*rank",
      error_of(hooks.powerSGD, { matrix_approximation_rank = 2 }))
    assert.matches("dist.hooks.topk: ratio must be at most 1: got 2",
      error_of(hooks.topk, { ratio = 2 }))
    assert.matches("dist.hooks.sign: chunk must be a multiple of 8: got 12",
      error_of(hooks.sign, { chunk = 12 }))
    assert.matches("dist.hooks: there is no 'topp'; did you mean 'topk'%?",
      error_of(function() return hooks.topp end))
    assert.matches("a wrapper needs a hook: a function, an object or a name: got 3",
      error_of(hooks.fp16_compress_wrapper, 3))
    assert.matches("load_state_dict: the state is that of 'topk'",
      error_of(function() hooks.int8():load_state_dict({ hook = "topk" }, lt.nn.Linear(1, 1)) end))
  end)

  it("in a wrapper send floats in 16 bits", function()
    ranks(2, [[
      local hooks = lt.dist.hooks
      same("f16", hooks.fp16_compress_wrapper(hooks.topk()).wire)
      same("bf16", hooks.bf16_compress_wrapper("powerSGD").wire)
      local seen
      local own = hooks.fp16_compress_wrapper(function(buffer)
        seen = buffer.dtype
        return dist.all_reduce(buffer)
      end)
      local net = lt.nn.Linear(3, 1)
      local ddp = dist.ddp(net, {comm_hook = own})
      ddp:backward(net.weight:sum())
      ddp:sync()
      same("f16", seen)
      same(1.0, net.weight.grad[1][1]:item())
      for _, name in ipairs {"powerSGD", "topk", "random_k"} do
        local hook = hooks.bf16_compress_wrapper(make(name))
        local ddp, wanted, sent = dist.ddp(Net(), {comm_hook = hook}), nil, nil
        for n = 1, 3 do
          local mean = step(ddp, n)[1]
          wanted = wanted and wanted + mean or mean
          local grad = ddp.module.first.weight.grad
          sent = sent and sent + grad or grad:clone()
        end
        local own = hook:state_dict(ddp.module).ranks[tostring(rank)]["first.weight"]
        assert(gap(wanted, sent + dist.all_reduce(own)) < 1e-3, name) -- sums are rounded on the way
      end
    ]])
  end)
end)

-- Fits.
local scripts <const> = trained.with [[
local Net = lt.Module:extend("Net")
function Net:init()
  lt.seed(4)
  self.first, self.second = lt.nn.Linear(12, 16), lt.nn.Linear(16, 2)
  self:to("f64")
end
function Net:forward(x) local hidden = self.first(x):tanh() return self.second(hidden) end
function Net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end
lt.seed(7)
local x = lt.randn(96, 12, {dtype = "f64"})
local data = lt.data.TensorDataset(x, x:sum(2):gt(0):to "i64")
local function loader() return lt.data.DataLoader(data, {batch_size = 4}) end
local OPTIONS = {powerSGD = {start = 3}, topk = {ratio = 0.1}, random_k = {ratio = 0.1}}
local function fit(hook, options, fit_options, net)
  local all = {strategy = lt.strategies.DDP {ddp_comm_hook = lt.dist.hooks[hook](OPTIONS[hook])}}
  for name, value in pairs(options or {}) do all[name] = value end
  local t = trainer(all)
  net = net or Net()
  t:fit(net, loader(), nil, fit_options)
  return net, t
end
local function hash(net) return lt.hash(net.first.weight) .. lt.hash(net.second.weight) end
]]

describe("a fit with a communication hook", function()
  it("has the same weights on all ranks, also with clipping and windows", function()
    for _, hook in ipairs(HOOKS) do
      local out = scripts.output(2, ([[
        local _, t = fit("%s", {replica_check_every_n_steps = 1, gradient_clip_val = 0.5,
          accumulate_grad_batches = 2})
        print(t.global_step)
      ]]):format(hook))
      assert.equal("6\n", out)
    end
  end)

  it("resumes exactly, from a file saved in the fit and after it", function()
    for _, hook in ipairs(HOOKS) do
      local out = scripts.output(2, ([[
        local whole = hash(fit("%s"))
        local _, first = fit("%s", {max_steps = 5})
        first:save_checkpoint "after"
        local net = Net()
        function net:on_train_batch_end(_, _, i)
          if i == 6 then self.trainer:save_checkpoint "within" end
        end
        fit("%s", {max_steps = 9}, nil, net)
        print(hash(fit("%s", nil, {ckpt_path = "after"})) == whole,
          hash(fit("%s", nil, {ckpt_path = "within"})) == whole)
      ]]):format(hook, hook, hook, hook, hook))
      assert.equal("true\ttrue\n", out, hook)
    end
  end)

  it("divides what is left to send among another number of ranks", function()
    assert.equal("true\n", (scripts.output(nil, [[
      local function residuals(ranks, options, fit_options)
        local net, list = Net(), nil
        function net:on_train_start() end
        function net:on_train_batch_start()
          local hook = self.trainer.strategy.ddp.reducer.hook
          local own = hook:state_dict(self).ranks[tostring(lt.dist.rank())]["first.weight"]
          if list == nil and own then list = lt.dist.all_gather(own:sum():item()) end
        end
        options.devices = ranks
        local _, t = fit("topk", options, fit_options, net)
        return t, list
      end
      local t = residuals(2, {max_steps = 5})
      t:save_checkpoint "cut"
      local saved = require "ltrain.files.checkpoint_file".read "cut".strategy.state.ranks
      local sum = saved["0"]["first.weight"]:sum():item() + saved["1"]["first.weight"]:sum():item()
      local _, list = residuals(3, {}, {ckpt_path = "cut"})
      local ok = #list == 3
      for _, own in ipairs(list) do ok = ok and math.abs(own - sum / 3) < 1e-12 end
      print(ok)
    ]])))
  end)

  it("notes that a checkpoint has the state of another hook", function()
    local _, err = scripts.output(2, [[
      local _, t = fit("topk", {max_steps = 3})
      t:save_checkpoint "cut"
      fit("int8", nil, {ckpt_path = "cut"})
    ]])
    assert.matches("note: strategies.DDP: the checkpoint has the state of ddp_comm_hook = 'topk': "
      .. "it is not used by 'int8'", err)
  end)

  it("leaves out steps on all ranks alike where one has no finite gradients", function()
    for _, hook in ipairs(HOOKS) do
      local out = scripts.output(2, ([[
        local net, steps = Net(), nil
        function net:training_step(batch, i)
          local loss = Net.training_step(self, batch)
          return i == 4 and lt.dist.rank() == 1 and loss * math.huge or loss
        end
        function net:on_train_end() steps = lt.dist.all_gather(self.trainer.global_step) end
        fit("%s", {nonfinite = "skip", replica_check_every_n_steps = 1}, nil, net)
        print(steps[1], steps[2], net.first.weight:isfinite():all():item())
      ]]):format(hook))
      assert.equal("11\t11\ttrue\n", out, hook)
    end
  end)

  it("with a scaled loss keeps residuals without the scale", function()
    assert.equal("true\ttrue\n", (scripts.output(2, [[
      -- The scale doubles after each step; powers of two change no bit.
      local function scaled()
        return lt.strategies.DDP {ddp_comm_hook = lt.dist.hooks.topk {ratio = 0.1},
          precision = {name = "scaled",
            scaler = lt.GradScaler {init_scale = 4, growth_interval = 1}}}
      end
      local plain = hash(fit("topk", {max_steps = 8}))
      local got = hash(fit("topk", {max_steps = 8, strategy = scaled()}))
      print(plain == got, got ~= hash(fit("topk", {max_steps = 7})))
    ]])))
  end)

  it("is refused with deterministic = 'world', and by strategies without whole gradients",
    function()
      local status, _, err = scripts.run(2, [[fit("sign", {deterministic = "world"})]])
      assert.equal(1, status)
      assert.matches("strategies.DDP: deterministic = 'world' needs .* ddp_comm_hook = 'sign'", err)
      status, _, err = scripts.run(2, [[
        local Tensor = lt.strategies.DDP:extend "Tensor"
        function Tensor:setup_mesh()
          return require "ltrain.dist.data_ranks".use(lt.dist.mesh({2}, {"tensor"}), {}, {})
        end
        fit("sign", {strategy = Tensor {ddp_comm_hook = "sign"}})
      ]])
      assert.equal(1, status)
      assert.matches("strategies.Tensor: ddp_comm_hook = 'sign' keeps state of whole param", err)
      assert.matches("ddp_comm_hook must be a function or 'bf16' here: got 'int8'",
        error_of(lt.strategies.Sharded, { ddp_comm_hook = "int8" }))
    end)
end)
