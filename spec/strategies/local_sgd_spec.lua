-- spec/strategies/local_sgd_spec.lua: LocalSGD: ranks step alone, weights are averaged.
-- tags: half, slow
local trained = require "spec.dist.trained"

local NET <const> = [[
local rank = lt.dist.rank
-- One weight in f64: loss (w x - 1)^2, gradient 2 x (w x - 1).
local Line = lt.Module:extend("Line")
function Line:init(o)
  self.o = o or {}
  self.w = lt.parameter(lt.tensor({0.5}, {dtype = "f64"}))
end
function Line:forward(x) return self.w * x end
function Line:training_step(batch) return (self(batch[1]) - 1):square():mean() end
function Line:validation_step(batch) self:log("val", self(batch[1]):mean()) end
function Line:configure_optimizers()
  return lt.optim[self.o.optimizer or "SGD"]({self.w}, {lr = 0.05, momentum = self.o.momentum})
end
local function numbers(count)
  local list = {}
  for i = 1, count do list[i] = (i * 7 % 11) / 5 - 0.6 end
  return list
end
local function loader(count, batch)
  local x = lt.tensor(numbers(count or 48), {dtype = "f64"}):reshape {-1, 1}
  return lt.data.DataLoader(lt.data.TensorDataset(x), {batch_size = batch or 1})
end
local function fit(o, options, fit_options, count)
  local net, all = (o and o.class or Line)(o), {strategy = {"local_sgd", period = 3}}
  for name, value in pairs(options or {}) do all[name] = value end
  local t = trainer(all)
  t:fit(net, loader(count), o and o.val and loader(8) or nil, fit_options)
  return net, t
end
local read = require "ltrain.files.checkpoint_file".read
]]

local scripts <const> = trained.with(NET)

local function prints(wanted, n, script)
  local out, err = scripts.output(n, script)
  assert.equal(wanted, (out:gsub("\t", " ")))
  return err
end

local function fails(n, words, script)
  local status, _, err = scripts.run(n, script)
  assert.equal(1, status, err)
  assert.matches(words, err)
end

describe("LocalSGD", function()
  it("steps and averages as PyTorch's PostLocalSGDOptimizer does", function()
    -- By hand: w[r] of each rank, gradients summed before step `warmup`, the mean after each step
    -- s with (s - warmup) % period == 0.
    prints("true true true true\n", 3, [[
      local ranks = n
      local function by_hand(period, warmup, momentum)
        local x, w, m, trace = numbers(48), {}, {}, {}
        for r = 1, ranks do w[r], m[r] = 0.5, nil end
        for s = 0, 48 // ranks - 1 do
          local g, mean = {}, 0
          for r = 1, ranks do
            local at = x[s * ranks + r]
            g[r] = 2 * at * (w[r] * at - 1)
            mean = mean + g[r] / ranks
          end
          for r = 1, ranks do
            local own = s < warmup and mean or g[r]
            m[r] = m[r] and momentum * m[r] + own or own
            w[r] = w[r] - 0.05 * m[r]
          end
          if s >= warmup and (s - warmup) % period == 0 then
            local sum = 0
            for r = 1, ranks do sum = sum + w[r] end
            for r = 1, ranks do w[r] = sum / ranks end
          end
          table.move(w, 1, ranks, #trace + 1, trace)
        end
        return trace
      end
      local function of_fit(period, warmup, momentum)
        local trace, Own = {}, Line:extend("Own")
        function Own:on_train_batch_end()
          for _, w in ipairs(lt.dist.all_gather(self.w:item())) do trace[#trace + 1] = w end
        end
        fit({class = Own, momentum = momentum},
          {strategy = {"local_sgd", period = period, warmup_steps = warmup}})
        return trace
      end
      local function near(...)
        local wanted, got = by_hand(...), of_fit(...)
        local equal = #wanted == 48 and #got == 48
        for i, w in ipairs(wanted) do equal = equal and math.abs(w - got[i]) < 1e-13 end
        return equal
      end
      print(near(3, 0, 0), near(2, 5, 0), near(4, 2, 0.9), near(1, 0, 0))
    ]])
  end)

  it("evaluates the mean, and trains on as if it had not", function()
    prints("true true\n", 2, [[
      local trace, equal = {}, true
      local Own = Line:extend("Own")
      function Own:on_train_batch_end() trace[#trace + 1] = self.w:item() end
      function Own:on_validation_start()
        local seen = lt.dist.all_gather(self.w:item())
        equal = equal and seen[1] == seen[2]
      end
      fit {class = Own}
      local wanted = table.concat(trace, " ")
      trace = {}
      fit({class = Own, val = true}, {val_check_interval = 2, num_sanity_val_steps = 1})
      print(table.concat(trace, " ") == wanted, equal)
    ]])
  end)

  it("ends a period that is not over with the mean, on all ranks", function()
    prints("true true\n", 2, [[
      local Own, before, after = Line:extend("Own"), nil, nil
      function Own:on_train_batch_end() before = lt.dist.all_gather(self.w:item()) end
      function Own:on_train_end() after = lt.dist.all_gather(self.w:item()) end
      local net = fit({class = Own}, {max_steps = 6}) -- steps 4 and 5 are apart
      local mean = (before[1] + before[2]) / 2
      print(before[1] ~= before[2], after[1] == mean and after[2] == mean and net.w:item() == mean)
    ]])
  end)

  it("trains with several optimizers, by hand, each with its own period", function()
    prints("true true\n", 2, [[
      local Two = Line:extend("Two")
      Two.automatic_optimization = false
      function Two:init()
        self.w, self.v = lt.parameter(lt.tensor {0.5}), lt.parameter(lt.tensor {0.25})
      end
      function Two:forward(x) return self.w * x:to "f32" + self.v end
      function Two:configure_optimizers()
        return {lt.optim.SGD({self.w}, {lr = 0.05}), lt.optim.Adam({self.v}, {lr = 0.05})}
      end
      local apart, together = 0, 0
      function Two:training_step(batch, i)
        local first, second = table.unpack(self:optimizers())
        for _, optimizer in ipairs(i % 2 == 0 and {first, second} or {first}) do
          optimizer:zero_grad()
          self:manual_backward((self(batch[1]) - 1):square():mean())
          optimizer:step()
        end
        local v = lt.dist.all_gather(self.v:item())
        local is_apart = v[1] ~= v[2]
        apart, together = apart + (is_apart and 1 or 0), together + (is_apart and 0 or 1)
      end
      local net = fit({class = Two}, {strategy = {"local_sgd", period = 2}})
      -- v steps in batches 0, 2, 4, ...: the mean holds for two batches, then not for two.
      print(apart == together, net.w:item() ~= 0.5)
    ]])
  end)

  it("stops all ranks, or leaves out a step on all, where one rank's gradient is not finite",
    function()
      fails(3, "optimizer_step: the gradients of w are not finite .*rank 1: .*made the first", [[
        function Line:training_step(batch, i)
          local y = self(batch[1])
          if i == 2 and rank() == 1 then y = y * math.huge end
          return (y - 1):square():mean()
        end
        fit()
      ]])
      prints("15 15 15\n", 3, [[
        local steps
        function Line:training_step(batch, i)
          local y = self(batch[1])
          if i == 2 and rank() == 1 then y = y * math.huge end
          return (y - 1):square():mean()
        end
        function Line:on_train_end() steps = lt.dist.all_gather(self.trainer.global_step) end
        fit(nil, {nonfinite = "skip", gradient_clip_val = 10})
        print(table.concat(steps, " "))
      ]])
    end)

  it("sends one message in a step that averages nothing, two where a script changes gradients",
    function()
      prints("1 1 2\n", 2, [[
        local traffic = require "ltrain.c".dist.traffic
        -- Collectives of a step, but for those of this callback.
        local function of_step(class, options)
          local found
          function class:on_train_batch_end(_, _, i)
            local count = 0
            for _, kind in pairs(traffic()) do count = count + kind.calls end
            if i == 3 then found = count - self.count end
            self.count = count
          end
          options.strategy = {"local_sgd", period = 9}
          fit({class = class}, options)
          return found
        end
        local Changes = Line:extend "Changes"
        function Changes:on_before_optimizer_step() self.w.grad:mul_(0.5) end
        print(of_step(Line:extend "Plain", {}),
          of_step(Line:extend "Clipped", {gradient_clip_val = 0.1}),
          of_step(Changes, {gradient_clip_val = 0.1}))
      ]])
    end)

  it("clips by the norm of a rank's own gradients", function()
    prints("0.05 0.05\n", 2, [[
      local norms
      function Line:on_before_optimizer_step(optimizer)
        norms = self.w:item()
      end
      function Line:on_train_batch_end()
        norms = lt.dist.all_gather(math.abs(self.w:item() - norms))
      end
      function Line:training_step(batch) return (self.w * (100 + rank() * 50)):sum() end
      fit(nil, {gradient_clip_val = 1, max_steps = 2, strategy = {"local_sgd", period = 9}})
      print(("%.2f %.2f"):format(norms[1], norms[2]))
    ]])
  end)

  it("gives ranks without a sample in a step their part of the mean", function()
    prints("true\n", 3, [[
      local net = fit(nil, {strategy = {"local_sgd", period = 1}}, nil, 4)
      -- Step 0: samples 1 to 3, step 1: the fourth on rank 0 alone.
      local x, w, sum = numbers(4), 0.5, 0
      for r = 1, 3 do sum = sum + w - 0.05 * 2 * x[r] * (w * x[r] - 1) end
      w = sum / 3
      w = (2 * w + w - 0.05 * 2 * x[4] * (w * x[4] - 1)) / 3
      print(math.abs(net.w:item() - w) < 1e-14)
    ]])
  end)

  it("compares what ranks hold alike: weights while gradients are summed", function()
    prints("12\n", 2, [[
      local _, t = fit(nil, {replica_check_every_n_steps = 1, max_steps = 12})
      print(t.global_step)
    ]])
    fails(2, "ranks hold different values after optimizer step 2, .*rank 1: w %(changed by add", [[
      function Line:on_train_batch_start(_, i)
        if i == 1 and rank() == 1 then lt.no_grad(function() self.w:add_(1) end) end
      end
      fit(nil, {replica_check_every_n_steps = 1, strategy = {"local_sgd", warmup_steps = 4}})
    ]])
  end)

  it("leaves parameters as they are that no rank steps", function()
    -- The mean of three equal numbers, rounded, may be another one.
    prints("true true true\n", 3, [[
      local Own = Line:extend("Own")
      function Own:init(o)
        Line.init(self, o)
        lt.seed(3)
        self.frozen, self.unused = lt.parameter(lt.randn(64)), lt.parameter(lt.randn(64))
        self.of_one = lt.parameter(lt.zeros(1, {dtype = "f64"}))
        self.frozen.requires_grad = false
        self.before = lt.hash(self.frozen) .. lt.hash(self.unused)
      end
      function Own:training_step(batch, i)
        local loss = Line.training_step(self, batch, i)
        return rank() == 1 and loss + self.of_one:sum() or loss
      end
      function Own:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.05}) end
      local net = fit {class = Own}
      io.write(tostring(net.before == lt.hash(net.frozen) .. lt.hash(net.unused)), " ")
      -- One that one rank steps is averaged, also within a period and after a resumption.
      local whole = net.of_one:item()
      local _, first = fit({class = Own}, {max_steps = 6})
      first:save_checkpoint("cut")
      print(whole ~= 0, fit({class = Own}, nil, {ckpt_path = "cut"}).of_one:item() == whole)
    ]])
  end)

  it("is one process on 1 rank", function()
    prints("true\n", 1, [[
      local alone = fit(nil, {strategy = "single_device"})
      print((fit()).w:item() == alone.w:item())
    ]])
  end)

  it("refuses what it cannot keep", function()
    fails(2, "strategies.LocalSGD: deterministic = 'world' needs results that do not", [[
      fit(nil, {deterministic = "world"})
    ]])
    fails(2, "strategies.LocalSGD: configure_ddp of the module is not used", [[
      function Line:configure_ddp() return lt.dist.ddp(self) end
      fit()
    ]])
    fails(2, "strategies.LocalSGD: period must be at least 1: got 0", [[
      trainer {strategy = {"local_sgd", period = 0}}
    ]])
    fails(2, "model_averaging_period is not an option here: write lt.strategies.LocalSGD", [[
      lt.strategies.DDP {model_averaging_period = 2}
    ]])
  end)
end)

describe("a checkpoint of LocalSGD", function()
  it("holds the mean, and changes nothing of the training", function()
    prints("true true\n", 2, [[
      local trace, mean, saves = {}, nil, false
      local Own = Line:extend("Own")
      function Own:on_train_batch_end(_, _, i)
        trace[#trace + 1] = self.w:item()
        if not saves then return end
        self.trainer:save_checkpoint "mid"
        if i == 4 then
          local all = lt.dist.all_gather(self.w:item())
          mean = (all[1] + all[2]) / 2
          if rank() == 0 then os.rename("mid", "kept") end
          lt.dist.barrier()
        end
      end
      fit {class = Own}
      local wanted = table.concat(trace, " ")
      trace, saves = {}, true
      fit {class = Own}
      print(table.concat(trace, " ") == wanted, read "kept".state_dict.w:item() == mean)
    ]])
  end)

  it("resumes exactly on as many ranks from any step, also one that was saved after the fit",
    function()
      prints("true true true true\n", 2, [[
        local o = {optimizer = "Adam"}
        local strategy = {"local_sgd", period = 3, warmup_steps = 2}
        local whole = fit(o, {strategy = strategy, max_epochs = 2}).w:item()
        for _, steps in ipairs {1, 4, 5, 31} do
          local _, first = fit(o, {strategy = strategy, max_epochs = 2, max_steps = steps})
          first:save_checkpoint "cut"
          local net = fit(o, {strategy = strategy, max_epochs = 2}, {ckpt_path = "cut"})
          io.write(tostring(net.w:item() == whole), steps == 31 and "\n" or " ")
        end
      ]])
    end)

  it("of older files has its own state in those of the optimizers, and resumes exactly", function()
    prints("true true\n", 2, [[
      local o, strategy = {optimizer = "Adam"}, {"local_sgd", period = 3}
      local whole = fit(o, {strategy = strategy, max_epochs = 2}).w:item()
      local _, first = fit(o, {strategy = strategy, max_epochs = 2, max_steps = 5})
      first:save_checkpoint "cut"
      local saved = read "cut"
      local own, ranks = saved.strategy.state, {}
      for r = 0, 1 do
        local of = own.ranks[tostring(r)]
        ranks[r + 1] = {state = of.optimizers[1], parameters = of.parameters}
      end
      local mine = ranks[2].parameters.w:item() ~= saved.state_dict.w:item()
      saved.optimizer_states[1].local_sgd = {steps = own.steps[1], ranks = ranks}
      saved.strategy = nil
      require "ltrain.files.checkpoint_file".write(saved, "older")
      local net = fit(o, {strategy = strategy, max_epochs = 2}, {ckpt_path = "older"})
      print(mine, net.w:item() == whole)
    ]])
  end)

  it("resumes exactly in the middle of a window of accumulate_grad_batches", function()
    prints("true true true true\n", 2, [[
      local o = {optimizer = "Adam"}
      local function options(warmup, more)
        local all = {strategy = {"local_sgd", period = 2, warmup_steps = warmup},
          accumulate_grad_batches = 4, limit_train_batches = 19}
        for name, value in pairs(more or {}) do all[name] = value end
        return all
      end
      -- Saves at the end of batch `at`, counted from 0.
      local function saving(at)
        local Own = Line:extend("Own")
        function Own:on_train_batch_end(_, _, i)
          if i == at then self.trainer:request_checkpoint("mid", {agreed = true}) end
        end
        return {optimizer = "Adam", class = Own}
      end
      for _, case in ipairs {{0, 1}, {0, 6}, {2, 5}, {1, 13}} do
        local warmup, at = table.unpack(case)
        local wanted = fit(o, options(warmup)).w:item()
        fit(saving(at), options(warmup))
        local got = fit(o, options(warmup), {ckpt_path = "mid"}).w:item()
        local same = warmup * 4 > at and math.abs(got - wanted) < 1e-14 or got == wanted
        io.write(tostring(same), case[2] == 13 and "\n" or " ")
      end
    ]])
  end)

  it("in the middle of a window gives other numbers of ranks equal parts of the gradients",
    function()
      prints("true true true true true true\n", nil, [[
        -- Three batches of 6 samples of all ranks a window; a file is saved after two.
        local x, w = numbers(48), 0.5
        local function g(value) return 2 * value * (w * value - 1) end
        local function loader()
          local all = lt.tensor(x, {dtype = "f64"}):reshape {-1, 1}
          return lt.data.DataLoader(lt.data.TensorDataset(all), {global_batch_size = 6})
        end
        local function run(net, strategy, ranks, options)
          trainer({strategy = strategy, devices = ranks, accumulate_grad_batches = 3,
            max_steps = 1}):fit(net, loader(), nil, options)
        end
        local function saves(strategy)
          local net = Line()
          function net:on_train_batch_end(_, _, i)
            if i == 1 then self.trainer:request_checkpoint("mid", {agreed = true}) end
          end
          run(net, strategy, 2)
        end
        local sum = 0 -- of the 12 samples in the file
        for i = 1, 12 do sum = sum + g(x[i]) end
        -- The gradients of the ranks that resume, and what each adds in the third batch.
        local function resumes(strategy, ranks)
          local net, mine, all = Line(), 0, nil
          function net:training_step(batch) -- once for each part of the third batch
            for _, row in ipairs(batch[1]:tolist()) do mine = mine + g(row[1]) end
            return Line.training_step(self, batch)
          end
          function net:on_before_optimizer_step()
            all = lt.dist.all_gather {self.w.grad:item(), mine}
          end
          run(net, strategy, ranks, {ckpt_path = "mid"})
          return all
        end
        local local_sgd = {"local_sgd", period = 9}
        local function alone(ranks)
          local ok = true
          for _, of in ipairs(resumes(local_sgd, ranks)) do
            ok = ok and math.abs(of[1] - (sum / ranks + of[2]) / (18 / ranks)) < 1e-13
          end
          return ok
        end
        local function together(ranks)
          local whole, ok, all = sum, true, resumes("ddp", ranks)
          for _, of in ipairs(all) do whole = whole + of[2] end
          for _, of in ipairs(all) do ok = ok and math.abs(of[1] - whole / 18) < 1e-13 end
          return ok and #all == ranks
        end
        saves(local_sgd)
        io.write(tostring(alone(1)), " ", tostring(alone(3)), " ")
        io.write(tostring(together(2)), " ", tostring(together(3)), " ")
        saves "ddp"
        print(alone(2), alone(3))
      ]])
    end)

  it("resumes from the mean on another number of ranks and under DDP", function()
    prints("true true true\n", nil, [[
      local function begin(strategy, ranks)
        local seen
        local Own = Line:extend("Own")
        function Own:on_train_start() seen = lt.dist.all_gather(self.w:item()) end
        fit({class = Own}, {strategy = strategy, devices = ranks, max_steps = 9},
          {ckpt_path = "cut"})
        local mean = read "cut".state_dict.w:item()
        for _, w in ipairs(seen) do
          if w ~= mean then return false end
        end
        return #seen == ranks
      end
      local _, first = fit(nil, {devices = 2, max_steps = 6})
      first:save_checkpoint "cut"
      print(begin("local_sgd", 3), begin("ddp", 2), begin("local_sgd", 1))
    ]])
  end)

  it("gives validation and a new module the mean", function()
    prints("true true\n", 2, [[
      local net, t = fit(nil, {max_steps = 6})
      t:save_checkpoint "cut"
      local other = Line()
      trainer({strategy = "local_sgd"}):validate(other, loader(8), {ckpt_path = "cut",
        verbose = false})
      local new = Line:load_from_checkpoint "cut"
      print(other.w:item() == net.w:item(), new.w:item() == net.w:item())
    ]])
  end)

  it("is not made after an error", function()
    local status, out, err = scripts.run(2, [[
      function Line:on_train_batch_end(_, _, i) if i == 3 then error "as planned" end end
      local callback = lt.callbacks.ModelCheckpoint {dirpath = "kept", save_on_exception = true}
      pcall(fit, nil, {enable_checkpointing = true, callbacks = {callback}})
      print(io.open(callback.exception_path) == nil)
    ]])
    assert.equal(0, status, err)
    assert.equal("true\n", out)
    assert.matches("on_exception: .*under strategies.LocalSGD each rank has a part .*: nothing "
      .. "is saved", err)
  end)
end)
