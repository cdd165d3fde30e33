-- spec/strategies/ranks_spec.lua: strategies, their parts, callbacks and loggers on two ranks.
-- tags: slow
local support = require "spec.dist.support"
local trained = require "spec.dist.trained"

-- A net on four features, a loader of 8 batches of 4; what a script of this spec begins with.
local NET <const> = [[
local strategies = lt.strategies
lt.seed(1)
local rank = lt.dist.rank
local Net = lt.Module:extend("Net")
function Net:init() self.layer = lt.nn.Linear(4, 1) end
function Net:training_step(batch) return self.layer(batch[1]):square():mean() end
Net.validation_step = Net.training_step
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local function loader(n)
  return lt.data.DataLoader(lt.data.TensorDataset(lt.ones(n or 32, 4)), {batch_size = 4})
end
-- What each rank has, as the text "a b" on rank 0.
local function of_ranks(value)
  return table.concat(lt.dist.all_gather(tostring(value)), " ")
end
]]

local scripts <const> = trained.with(NET)
local function run(script) return scripts.run(2, script) end

local function prints(wanted, script)
  local out, err = scripts.output(2, script)
  assert.equal(wanted, out)
  return err
end

describe("on two ranks", function()
  it("a strategy of one's own trains, with a precision of its own", function()
    prints("setup\t2\ntrue\tf64 f64\t4\n", [[
      local Mine = strategies.DDP:extend("Mine")
      function Mine:setup(trainer)
        Mine.super.setup(self, trainer)
        if self.is_global_zero then print("setup", self.world_size) end
      end
      local precision = {
        convert_module = function(_, module) module:to "f64" end,
        convert_input = function(_, batch) return {batch[1]:to "f64"} end,
      }
      local net, seen, equal = Net(), nil, nil
      function net:on_train_end()
        seen = of_ranks(self.layer.weight.dtype)
        local weights = lt.dist.all_gather(self.layer.weight)
        equal = weights[1]:eq(weights[2]):all():item()
      end
      local t = trainer {strategy = Mine {precision = precision}}
      t:fit(net, loader())
      print(equal, seen, t.global_step)
    ]])
  end)

  it("a registered name brings its checkpoint_io: rank 0 saves, every rank loads", function()
    prints("rank 0 saves 4\n0 0\tnil nil\n1 1\ttrue\n", [[
      local loads = 0
      local io = {
        save = function(_, checkpoint, path)
          print(("rank %d saves %d"):format(rank(), checkpoint.global_step))
          return lt.save(path, checkpoint)
        end,
        load = function(_, path)
          loads = loads + 1
          return lt.load(path)
        end,
        remove = function(_, path) os.remove(path) end,
      }
      strategies.register("stored", strategies.DDP, {params = {checkpoint_io = io}})
      local net, before = Net(), nil
      local t = trainer {strategy = "stored"}
      function net:on_fit_end()
        t:save_checkpoint("a.ckpt")
        local counts = of_ranks(loads)
        local path = of_ranks(t.ckpt_path)
        if rank() == 0 then print(counts, path) end
      end
      t:fit(net, loader())
      local other = Net()
      function other:on_validation_end() before = of_ranks(loads) end
      trainer({strategy = "stored"}):validate(other, loader(), {ckpt_path = "a.ckpt"})
      print(before, net.layer.weight:eq(other.layer.weight):all():item())
    ]])
  end)

  it("a comm that the strategy asks for and that is not there is an error", function()
    local status, _, err = run [[
      trainer({strategy = strategies.DDP {process_group_backend = "mpi"}}):fit(Net(), loader())
    ]]
    assert.equal(1, status)
    assert.matches("strategies.DDP: process_group_backend = 'mpi', but these ranks communicate "
      .. "over shm: "
      .. "start them with `mpirun %-n N ltrain run SCRIPT`", err)
    local _, count = err:gsub("process_group_backend", "")
    assert.equal(1, count)
    _, _, err = run [[
      trainer({strategy = strategies.DDP {process_group_backend = "nccl"}}):fit(Net(), loader())
    ]]
    assert.matches("strategies.DDP: process_group_backend = 'nccl', but the ranks are on the "
      .. "device '[%w:]+': nccl is between GPUs", err)
  end)

  it("hooks of the transfer get their batches", function()
    prints("4 4\n", [[
      local net, count, seen = Net(), 0, nil
      function net:on_after_batch_transfer(batch)
        count = count + 1
        return batch
      end
      function net:on_train_end() seen = of_ranks(count) end
      trainer({}):fit(net, loader())
      print(seen)
    ]])
  end)

  it("configure_ddp of the module, else of the strategy, says how gradients are shared", function()
    prints("module: 4 backward, 2 sync\tstrategy: 4 backward, 2 sync\ttrue\n", [[
      -- Counts, and leaves the work to the usual one.
      local function counting(module)
        local usual = lt.dist.ddp(module)
        local ddp = {backwards = 0, syncs = 0}
        function ddp:backward(loss, weight)
          self.backwards = self.backwards + 1
          usual:backward(loss, weight)
        end
        function ddp:sync(...)
          self.syncs = self.syncs + 1
          return usual:sync(...)
        end
        return ddp
      end
      local Mine, of_strategy = strategies.DDP:extend("Mine"), nil
      function Mine:configure_ddp(module)
        of_strategy = counting(module)
        return of_strategy
      end
      local function fit(net)
        lt.seed(2)
        trainer({strategy = Mine(), accumulate_grad_batches = 2}):fit(net, loader())
      end
      local function reported(name, ddp)
        return ("%s: %d backward, %d sync"):format(name, ddp.backwards, ddp.syncs)
      end
      lt.seed(2)
      local a, of_module = Net(), nil
      function a:configure_ddp()
        of_module = counting(self)
        return of_module
      end
      fit(a)
      local first = of_strategy
      lt.seed(2)
      local b = Net()
      fit(b)
      assert(first == nil)
      print(reported("module", of_module), reported("strategy", of_strategy),
        a.layer.weight:eq(b.layer.weight):all():item())
    ]])
  end)

  it("configure_ddp must return such an object", function()
    local status, _, err = run [[
      local net = Net()
      function net:configure_ddp() return {backward = print} end
      trainer({}):fit(net, loader())
    ]]
    assert.equal(1, status)
    assert.matches("configure_ddp: must return an object with backward%(loss, weight%) and sync%(%)"
      .. ": got a table without sync", err)
  end)

  it("ddp_comm_hook reduces the buckets", function()
    prints("true\ttrue\n", [[
      -- Weights after one step on ones * (rank + 1): the usual, and through a hook.
      local function fit(hook)
        lt.seed(3)
        local net, buckets = Net(), 0
        function net:training_step()
          local x = lt.full({1, 4}, rank() + 1.0):to(self.device)
          return self.layer(x):mean()
        end
        local own = hook == true and function(bucket)
          buckets = buckets + 1
          return lt.dist.all_reduce(bucket)
        end or hook
        trainer({max_steps = 1, strategy = strategies.DDP {ddp_comm_hook = own}})
          :fit(net, loader())
        return net.layer.weight, buckets
      end
      local usual = fit(nil)
      local hooked, buckets = fit(true)
      local nothing = fit(function(bucket) return lt.zeros_like(bucket) end)
      lt.seed(3)
      print(hooked:eq(usual):all():item() and buckets == 1,
        nothing:to 'cpu':eq(Net().layer.weight):all():item())
    ]])
  end)

  it("ddp_comm_hook = 'bf16' sends gradients in bf16", function()
    prints("1.00390625\t1.0\n", [[
      -- The gradient is the mean of 1 and 1 + 1/128; their sum is between two bf16: 2, 2 + 1/64.
      local function step(hook)
        lt.seed(3)
        local net = Net()
        function net:training_step()
          local x = lt.full({1, 4}, rank() == 0 and 1.0 or 1.0078125)
          return self.layer(x:to(self.device)):mean()
        end
        function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 1.0}) end
        net.layer.weight:detach():fill_(0)
        trainer({max_steps = 1, strategy = strategies.DDP {ddp_comm_hook = hook}})
          :fit(net, loader())
        return -net.layer.weight[1][1]:item()
      end
      print(step(), step("bf16"))
    ]])
  end)

  it("older hooks *_step_end get each rank's own output", function()
    local err = prints("10 11\n", [[
      local net, parts = Net(), nil
      function net:training_step(batch)
        return {loss = self.layer(batch[1]):mean(), part = 10 + rank()}
      end
      function net:training_step_end(outputs)
        self.part = outputs.part
        return outputs
      end
      function net:on_train_end() parts = of_ranks(self.part) end
      trainer({}):fit(net, loader())
      print(parts)
    ]])
    local _, count = err:gsub("note: training_step_end", "")
    assert.equal(1, count)
  end)
end)

describe("a callback of a script", function()
  it("runs on rank 0 alone, which is noted, unless it asks for all ranks", function()
    local err = prints("1 0\t1 1\t1 0\n", [[
      local function counting(all_ranks)
        local C = lt.Callback:extend("Counting")
        C.all_ranks = all_ranks
        function C:on_train_start() self.count = (self.count or 0) + 1 end
        return C()
      end
      local one, all, silent = counting(nil), counting(true), counting(false)
      local net, text = Net(), nil
      function net:on_train_end()
        text = ("%s\t%s\t%s"):format(of_ranks(one.count or 0), of_ranks(all.count or 0),
          of_ranks(silent.count or 0))
      end
      trainer({callbacks = {one, all, silent}}):fit(net, loader())
      print(text)
    ]])
    assert.matches("note: Counting: on rank 0 only; all_ranks = true in a callback", err)
  end)

  it("that stops the fit on rank 0 stops all at the same step", function()
    prints("true\ttrue\n", [[
      local net, steps = Net(), nil
      local stop = {on_train_batch_end = function(_, t, _, _, _, i) t.should_stop = i == 1 end}
      function net:on_train_end() steps = lt.dist.all_gather(self.trainer.global_step) end
      trainer({callbacks = {stop}}):fit(net, loader(64))
      print(steps[1] == steps[2], steps[1] < 4)
    ]])
  end)
end)

describe("a logger of a script", function()
  it("logs on rank 0 alone, unless it asks for all ranks", function()
    prints("1 0\t1 1\n", [[
      local function counting(all_ranks)
        local L = lt.Logger:extend("Counting")
        L.all_ranks, L.count = all_ranks, 0
        function L:log_metrics() self.count = self.count + 1 end
        return L()
      end
      local one, all = counting(), counting(true)
      local net, text = Net(), nil
      function net:on_train_epoch_end() self:log("x", 1) end
      function net:on_fit_end()
        text = of_ranks(one.count) .. "\t" .. of_ranks(all.count)
      end
      trainer({logger = {one, all}}):fit(net, loader())
      print(text)
    ]])
  end)
end)

describe("a logger of the others", function()
  it("answers its methods, and does nothing", function()
    prints("logs\ttrue\n1\n", [[
      local L, count = lt.Logger:extend("Mine"), 0
      L.name = "logs"
      function L:write() count = count + 1 end
      local net = Net()
      function net:on_train_start()
        self.logger:write()
        if rank() == 1 then print(self.logger.name, self.logger.write ~= L.write) end
        lt.dist.barrier()
      end
      trainer({logger = L()}):fit(net, loader())
      print(count)
    ]])
  end)
end)

describe("ckpt_path = 'best' and 'last'", function()
  it("are what rank 0 finds", function()
    prints("4 4\tlast.ckpt last.ckpt\n8 8\tepoch=1-step=8.ckpt epoch=1-step=8.ckpt\n", [[
      local net, text = Net(), nil
      local function name() return net.trainer.ckpt_path:match "[^/]*$" end
      function net:on_train_start()
        text = of_ranks(self.trainer.global_step) .. "\t" .. of_ranks(name())
      end
      local function fit(epochs, options)
        local t = trainer {max_epochs = epochs, logger = true, enable_checkpointing = true}
        t:fit(net, loader(), nil, options)
        return t
      end
      local first = lt.Trainer {max_epochs = 1, devices = 2, enable_progress_bar = false,
        enable_model_summary = false}
      first:fit(Net(), loader())
      local t = fit(2, {ckpt_path = "last"})
      print(text)
      t.max_epochs = 3
      t:fit(net, loader(), nil, {ckpt_path = "best"})
      print(text)
    ]])
  end)

  it("that is not there is one error", function()
    local status, _, err = run [[
      trainer({}):fit(Net(), loader(), nil, {ckpt_path = "best"})
    ]]
    assert.equal(1, status)
    local _, count = err:gsub("ckpt_path = 'best': no best checkpoint is known", "")
    assert.equal(1, count, err)
  end)
end)

describe("under mpirun", function()
  it("strategy, checkpoint_io and callbacks do the same", function()
    local missing = require "ltrain.clusters.mpirun".missing()
    if missing then
      pending(missing)
      return
    end
    local status, output = support.mpirun(2, trained.prelude .. NET .. [[
      local Reporting = lt.CheckpointIO:extend("Reporting")
      function Reporting:save(checkpoint, path)
        print("saved by", rank())
        return Reporting.super.save(self, checkpoint, path)
      end
      function Reporting:remove(path)
        print("removed by", rank())
        return Reporting.super.remove(self, path)
      end
      local Mine, setups = strategies.DDP:extend("Mine"), 0
      function Mine:setup(trainer)
        Mine.super.setup(self, trainer)
        setups = setups + 1
      end
      local count = 0
      local watch = {on_train_start = function() count = count + 1 end}
      local net, counts = Net(), nil
      function net:on_train_end() counts = of_ranks(count) end
      local t = trainer {
        callbacks = {watch, lt.callbacks.ModelCheckpoint {dirpath = "saved"}},
        enable_checkpointing = true, gpus = 0, max_epochs = 2,
        strategy = Mine {process_group_backend = "mpi", checkpoint_io = Reporting()},
      }
      t:fit(net, loader())
      local saved = net.layer.weight:clone()
      lt.no_grad(function() net.layer.weight:fill_(0) end)
      t:validate(nil, loader(), {verbose = false})
      local same = net.layer.weight:eq(saved):all():item()
      local sames, all = of_ranks(same), of_ranks(setups)
      if rank() == 0 then print(counts, sames, all) end
    ]], "run")
    assert.equal(0, status, output)
    assert.equal(2, select(2, output:gsub("saved by\t0\n", "")), output)
    assert.equal(1, select(2, output:gsub("removed by\t0\n", "")), output)
    assert.is_nil(output:find("d by\t1", 1, true), output)
    assert.matches("1 0\ttrue true\t2 2\n", output, 1, true)
    assert.equal(1, select(2, output:gsub("note: gpus = 0", "")), output)
  end)
end)

describe("prepare_data", function()
  local lt = require "ltrain"
  local tiny = require "spec.trainer.tiny"

  -- Whether it runs on a rank of these numbers.
  local function prepares(local_rank, global_rank, per_node)
    local strategy = lt.strategies.DDP()
    local trainer = tiny.trainer { strategy = strategy }
    strategy.local_rank, strategy.global_rank = local_rank, global_rank
    local net, ran = tiny.Line(), false
    net.prepare_data_per_node = per_node
    function net.prepare_data() ran = true end
    trainer:fit(net, tiny.same(1))
    return ran
  end

  it("runs once a machine, or once in all", function()
    assert.same({ true, true, false }, { prepares(0, 0), prepares(0, 4), prepares(1, 5) })
    assert.same({ true, false, false },
      { prepares(0, 0, false), prepares(0, 4, false), prepares(1, 5, false) })
  end)
end)
