-- spec/parallel/pipeline_spec.lua: a fit in a pipeline is the one of one process.
-- tags: sixth, slow
local net = require "spec.parallel.pipeline_net"

local prints <const>, fails <const> = net.prints, net.fails

describe("Pipeline trains as one process", function()
  it("on 2, 3 and 4 stages", function()
    prints("same same same same\n", [[
      print(same(1), same(2, {split = {2}}), same(3, {balance = "parameters"}),
        same(4, {split = {1, 2, 4}}))
    ]])
  end)

  it("with stages cut by measured time", function()
    prints("same same same\n", [[ print(same(2), same(3), same(4, {stages = 2})) ]])
  end)

  it("in each schedule", function()
    prints("same same same same same\n", [[
      print(same(2, {schedule = "gpipe"}), same(2, {schedule = "interleaved"}),
        same(2, {schedule = "interleaved", microbatches = 3}),
        same(2, {schedule = "zero_bubble"}), same(3, {schedule = "zero_bubble"},
          {list = true, dropout = 0.3}, nil, pipeline()))
    ]])
  end)

  it("with data parallel on another dim", function()
    prints("same same\n", [[
      print(same(4, {data_parallel_size = 2, balance = "parameters"}),
        same(4, {stages = 2, schedule = "gpipe", microbatches = 2}))
    ]])
  end)

  it("with blocks that a loop of the script calls", function()
    prints("same same\n", [[
      print(same(2, {split = {3}}, {list = true}), same(3, nil, {list = true}))
    ]])
  end)

  it("with clipping, accumulation and a scheduler of steps", function()
    prints("same same same\n", [[
      function Chain:configure_optimizers()
        local optimizer = lt.optim.Adam(self:parameters(), {lr = 0.02})
        return {optimizer = optimizer, lr_scheduler = {interval = "step",
          scheduler = lt.optim.StepLR(optimizer, {step_size = 2, gamma = 0.7})}}
      end
      print(same(2, {split = {2}}, nil, {gradient_clip_val = 0.05}),
        same(3, nil, nil, {accumulate_grad_batches = 2, gradient_clip_val = 0.05}),
        same(4, {stages = 2}, nil, {accumulate_grad_batches = 3}))
    ]])
  end)

  it("in ranks of mpirun", function()
    local missing = require "ltrain.clusters.mpirun".missing()
    if missing then
      pending(missing)
      return
    end
    assert.equal("same\tsame\n", (net.scripts.over("mpi", 2, [[
      local a, t = fit(pipeline {stages = 1, data_parallel_size = 2, microbatches = 2}, nil)
      local b, u = fit(pipeline {split = {2}}, nil)
      local c, v = fit(pipeline(), nil)
      if lt.dist.rank() == 0 then -- which has the whole state of the optimizers afterwards
        print(is_equal(a, t, b, u) and "same", is_equal(a, t, c, v) and "same")
      end
    ]])))
  end)

  it("with activations that backward computes again, and frozen parameters", function()
    prints("same same same same\n", [[
      local Again = Chain:extend("Again")
      function Again:init()
        Again.super.init(self, {list = true, dropout = 0.3})
        self.embed:requires_grad_(false)
        self.blocks[4]:requires_grad_(false)
      end
      function Again:forward(x)
        local h = self.embed(x)
        for _, block in ipairs(self.blocks) do h = nn.utils.checkpoint(block, h) end
        h = self.head(h):matmul(self.embed.weight)
        return h
      end
      local o, one = {class = Again}, pipeline()
      print(same(2, {split = {2}}, o, nil, one), same(3, nil, o, nil, one),
        same(2, {schedule = "zero_bubble", split = {3}}, o, nil, one),
        same(2, {schedule = "interleaved", balance = "parameters"}, o, nil, one))
    ]])
  end)

  it("with a matrix that the first and the last stage share", function()
    prints("same same\n", [[
      local LM = lt.Module:extend("LM")
      function LM:init()
        self.gpt = lt.models.gpt2 {vocab_size = 11, n_positions = 6, n_embd = 8, n_layer = 3,
          n_head = 2, dropout = 0}
        self:to "f64"
      end
      local function loss_of(self, ids)
        local logits = self.gpt(ids)
        return nn.functional.cross_entropy(logits:reshape(-1, 11), ids:reshape(-1) + 1)
      end
      function LM:training_step(batch)
        local loss = loss_of(self, batch[1])
        self:log("loss", loss, {on_step = false, on_epoch = true})
        return loss
      end
      function LM:validation_step(batch) self:log("val_loss", loss_of(self, batch[1])) end
      function LM:configure_optimizers() return lt.optim.AdamW(self:parameters(), {lr = 0.01}) end
      x = lt.randint(0, 10, {36, 6}):to "i64"
      LOGGED = {"loss", "val_loss"}
      print(same(2, {split = {1}}, {class = LM}), same(3, nil, {class = LM}))
    ]])
  end)

  it("with dropout, as one stage of the same microbatches does", function()
    prints("same same same same other\n", [[
      local one = pipeline()
      print(same(2, {split = {2}}, {dropout = 0.3}, nil, one),
        same(3, {schedule = "gpipe"}, {dropout = 0.3}, nil, one),
        same(2, {schedule = "interleaved"}, {dropout = 0.3}, nil, one),
        same(4, {stages = 2, microbatches = 2}, {dropout = 0.3}, nil, one),
        same(2, nil, {dropout = 0.3}))
    ]])
  end)

  it("with batch norm, as one stage of the same microbatches does", function()
    prints("same same\n", [[
      local Norm = Chain:extend("Norm")
      function Norm:init(o)
        Norm.super.init(self, o)
        for i = 1, 5, 2 do self.blocks[i] = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)) end
        self:to "f64"
      end
      -- Adam would divide what rounding has left of the gradients of biases before a norm.
      function Norm:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.05}) end
      local one = pipeline {microbatches = 2}
      print(same(2, {split = {3}, microbatches = 2}, {class = Norm}, nil, one),
        same(3, {microbatches = 2}, {class = Norm}, nil, one))
    ]])
  end)

  it("with several values between the blocks, and arguments that stay", function()
    prints("same same\n", [[
      local Pair = lt.Module:extend("Pair")
      function Pair:init() self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8) end
      function Pair:forward(state, sum, scale)
        local h = self.a(state.h):tanh() * scale
        return {h = self.b(h) + state.h, t = state.t}, sum + h:mean {dim = 2, keepdim = true}
      end
      local Net = Chain:extend("Net")
      function Net:init(o)
        Net.super.init(self, {list = true})
        for i = 1, 5 do self.blocks[i] = Pair() end
        self.scale = lt.parameter(lt.tensor({0.7}))
        self:to "f64"
      end
      function Net:forward(x)
        local state = {h = self.embed(x), t = lt.tensor {1, 2}}
        local sum = lt.zeros(x.shape[1], 1):to "f64"
        for _, block in ipairs(self.blocks) do state, sum = block(state, sum, self.scale) end
        return self.head(state.h):matmul(self.embed.weight) + sum
      end
      function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end
      print(same(2, {split = {2}}, {class = Net}), same(3, nil, {class = Net}))
    ]])
  end)

  it("with losses that weigh differently, and batches without one", function()
    prints("same same\n", [[
      function Chain:training_step(batch, i)
        if i == 1 then return nil end
        local y = self(batch[1])
        if i == 3 then return nil end
        local loss = (y - 1):square():mean()
        self:log("loss_epoch", loss, {on_step = false, on_epoch = true})
        self:log("count", 1, {on_step = false, on_epoch = true, reduce_fx = "max"})
        return {loss = loss, weight = batch[1].shape[1] * (i + 1), extra = 1}
      end
      local o = {accumulate_grad_batches = 5}
      print(same(2, {split = {2}}, nil, o), same(3, nil, nil, o))
    ]])
  end)
end)

describe("Pipeline", function()
  it("knows the loss of a batch on all ranks", function()
    prints("true\n", [[
      local losses = {}
      function Chain:on_train_batch_end(outputs) table.insert(losses, outputs) end
      fit("single_device", 1, nil, {max_epochs = 1})
      local wanted = losses
      losses = {}
      function Chain:on_train_end()
        for i, loss in ipairs(losses) do
          for _, one in ipairs(lt.dist.all_gather(loss:item())) do
            assert(math.abs(one - wanted[i]:item()) < 1e-9)
          end
        end
        if lt.dist.rank() == 0 then print(#losses == 5) end
      end
      fit(pipeline(), 3, nil, {max_epochs = 1})
    ]])
  end)

  it("writes rows of what the last stage logs", function()
    prints("true 5\n", [[
      local Rows = lt.Logger:extend("Rows")
      function Rows:log_metrics(row, step)
        self.rows = self.rows or {}
        if row.loss_step then self.rows[#self.rows + 1] = row.loss_step end
      end
      local all = {}
      for i, strategy in ipairs {"single_device", pipeline {split = {2}}} do
        local logger = Rows()
        fit(strategy, i, nil, {max_epochs = 1, logger = logger, log_every_n_steps = 1})
        all[i] = logger.rows
      end
      print(apart(all[1], all[2]) < 1e-9, #all[2])
    ]])
  end)

  it("validates, tests and predicts by stages, also without a fit", function()
    prints("true true true 5\n", [[
      lt.seed(1)
      local net = Chain()
      local one = trainer {devices = 1}
      local two = trainer {devices = 2, strategy = pipeline()}
      local function get(t)
        local all = {verbose = false}
        return t:validate(net, loader {shuffle = false}, all)[1].val_loss,
          t:test(net, loader {shuffle = false}, all)[1].val_loss,
          t:predict(net, loader {shuffle = false})
      end
      local v, s, p = get(one)
      local w, r, q = get(two)
      print(math.abs(v - w) < 1e-9, math.abs(s - r) < 1e-9, apart(p, q) < 1e-9, #q)
    ]])
  end)

  it("gives back the whole module after a fit, with the calls and hooks of its blocks", function()
    prints("true 5 true\n", [[
      local count = 0
      local Hooked = Chain:extend("Hooked")
      function Hooked:init(o)
        Hooked.super.init(self, o)
        for i = 1, 5 do
          self.blocks[i]:register_forward_pre_hook(function(_, args)
            assert(args[1].shape[2] == 8)
            count = count + 1
          end)
        end
      end
      local a, t = fit("single_device", 1, {class = Hooked})
      local b, u = fit(pipeline(), 2, {class = Hooked})
      count = 0
      local y = b(x)
      print(is_equal(a, t, b, u), count, rawget(b.blocks[1], "forward") == nil)
    ]])
  end)

  it("averages weights, which it gathers for that", function()
    prints("true true\n", [[
      for _, name in ipairs {"EMAWeightAveraging", "StochasticWeightAveraging"} do
        local function averaged(strategy, ranks)
          local o = name:find "EMA" and {decay = 0.9} or {swa_lrs = 0.01, swa_epoch_start = 1}
          return fit(strategy, ranks, nil, {callbacks = {lt.callbacks[name](o)}})
        end
        local a, t = averaged("single_device", 1)
        local b, u = averaged(pipeline {split = name:find "EMA" and {2} or nil}, 2)
        io.write(tostring(is_equal(a, t, b, u)), name:find "EMA" and " " or "\n")
      end
    ]])
  end)

  it("has only its own parameters in memory, and steps them alone", function()
    prints("true\n", [[
      function Chain:on_train_epoch_end()
        local optimizer, own = self:optimizers(), 0
        for _, block in ipairs(self.blocks) do
          local p = block[1].weight
          local is_here = pcall(function() return p:sum():item() end)
          assert(is_here == (optimizer.state[p] ~= nil))
          if is_here then own = own + 1 end
        end
        local all = lt.dist.all_gather(own)
        if lt.dist.rank() == 0 then print(all[1] == 2 and all[2] == 3) end
      end
      fit(pipeline {split = {2}}, 2, nil, {max_epochs = 1})
    ]])
  end)
end)

describe("Pipeline refuses", function()
  local function refuses(words, script)
    return fails("strategies%.Pipeline: " .. words, script)
  end

  it("what a chain cannot be cut in", function()
    refuses("the first argument of blocks%[2%] is not what blocks%[1%] has returned", [[
      function Chain:forward(x)
        local h = self.embed(x)
        for _, block in ipairs(self.blocks) do h = h + block(h) end
        return h
      end
      fit(pipeline(), 2, {list = true})
    ]])
    refuses("what a block of 'blocks' returns is used outside of the next block", [[
      function Chain:forward(x)
        local h, first = self.embed(x), nil
        for _, block in ipairs(self.blocks) do
          h = block(h)
          first = first or h
        end
        return h + first
      end
      fit(pipeline {split = {2}}, 2, {list = true})
    ]])
    refuses("blocks%[1%] is called after blocks%[5%]", [[
      function Chain:forward(x) return self.blocks(self.blocks(self.embed(x))) end
      fit(pipeline(), 2)
    ]])
    refuses("the step has ended without a call of blocks%[2%]", [[
      function Chain:forward(x) return self.blocks[1](self.embed(x)) end
      fit(pipeline(), 2)
    ]])
    refuses("blocks%[1%] and blocks%[2%] are one module", [[
      local One = Chain:extend("One")
      function One:init()
        One.super.init(self)
        self.blocks[2] = self.blocks[1]
      end
      fit(pipeline(), 2, {class = One})
    ]])
  end)

  it("options that do not fit", function()
    refuses("split must have 1 numbers below 5", [[ fit(pipeline {split = {5}}, 2) ]])
    refuses("stages = 3, data_parallel_size = auto: there are 2 ranks",
      [[ fit(pipeline {stages = 3}, 2) ]])
    refuses("module = 'head': must be the name of a Sequential or ModuleList",
      [[ fit(pipeline {module = "head"}, 2) ]])
    refuses("which Sequential or ModuleList is divided%?", [[
      function Chain:configure_model()
        self.others = nn.ModuleList {nn.Linear(2, 2), nn.Linear(2, 2)}
        self.more = nn.ModuleList {nn.Linear(2, 2), nn.Linear(2, 2)}
        self.blocks = nil
      end
      fit(pipeline(), 2)
    ]])
    refuses("Chain has no Sequential or ModuleList of at least 6 elements",
      [[ fit(pipeline {schedule = "interleaved", chunks = 3}, 2) ]])
  end)

  it("runs that it cannot make", function()
    refuses("manual optimization", [[
      Chain.automatic_optimization = false
      fit(pipeline(), 2)
    ]])
    refuses("an object of class LBFGS overrides step", [[
      function Chain:configure_optimizers() return lt.optim.LBFGS(self:parameters()) end
      fit(pipeline(), 2)
    ]])
    refuses("deterministic = 'world'", [[ fit(pipeline(), 2, nil, {deterministic = "world"}) ]])
    refuses("the callback ModelPruning reads whole parameters", [[
      fit(pipeline(), 2, nil, {callbacks = {lt.callbacks.ModelPruning "l1_unstructured"}})
    ]])
  end)

  it("tensors of a batch that have different sizes", function()
    refuses("tensors of a batch must have one size of dim 1, .* got 8 and 3", [[
      lt.seed(1)
      trainer {devices = 2, strategy = pipeline()}:fit(Chain(), function()
        return {x:narrow(1, 1, 8), x:narrow(1, 1, 3)}
      end)
    ]])
  end)
end)

describe("a stage that fails", function()
  it("ends the job with one sentence: an error in its blocks", function()
    local err = fails("rank 1: script%.lua:%d+: matmul: inner sizes differ", [[
      local Bad = Chain:extend("Bad")
      function Bad:init(o)
        Bad.super.init(self, o)
        self.blocks[4].forward = function(_, h) return h:matmul(lt.ones(3, 3):to "f64") end
      end
      fit(pipeline {split = {2}}, 2, {class = Bad})
    ]])
    assert.equal(1, select(2, err:gsub("inner sizes differ", "")))
  end)

  it("reports gradients that are not finite with names of all stages", function()
    fails("gradients of blocks%.0%.0%.weight, .* and 20 more are not finite "
      .. ".*rank 1: sqrt at script%.lua:%d+ made the first nan", [[
      function Chain:training_step(batch) return (self(batch[1]):mean() * 0 - 1):sqrt() end
      fit(pipeline {split = {2}}, 2)
    ]])
  end)

  for _, row in ipairs { { 0, "first" }, { 1, "middle" }, { 2, "last" } } do
    it("ends the job when it is killed: the " .. row[2] .. " one", function()
      local one <close> = net.scripts.start("shm", 3, ([[
        function Chain:training_step(batch, i)
          local y = self(batch[1])
          return y:square():mean()
        end
        function Chain:on_train_batch_start(_, i)
          if i == 2 and lt.dist.rank() == %d then
            os.execute("kill -KILL " .. lt.dist.world().pid)
          end
        end
        fit(pipeline(), 3)
      ]]):format(row[1]))
      assert.truthy(one:wait_for("status", 30), "it does not end")
      assert.truthy(one:wait_gone(10), "processes are left")
      assert.not_equal(0, one:status())
      if row[1] > 0 then assert.matches("rank " .. row[1], one:read "err") end
    end)
  end

  it("is reported when it does not come", function()
    local one <close> = net.scripts.start("shm", 2, [[
      function Chain:forward(x)
        local h = self.blocks(self.embed(x))
        while lt.dist.rank() == 1 do end
        return self.head(h):matmul(self.embed.weight)
      end
      fit(pipeline {split = {2}, timeout = 3}, 2)
    ]])
    assert.truthy(one:wait_for("status", 40), "it does not end")
    assert.truthy(one:wait_gone(10), "processes are left")
    assert.not_equal(0, one:status())
    assert.matches("rank 1", one:read "err")
  end)
end)
