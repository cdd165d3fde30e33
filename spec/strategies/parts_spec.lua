-- spec/strategies/parts_spec.lua: strategies as objects, and the parts that scripts replace.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local error_of, strategies = tiny.error_of, lt.strategies

-- Validates too.
local Line = tiny.Line:extend("Line")
Line.validation_step = Line.training_step

describe("a strategy as an object", function()
  it("is what the Trainer uses", function()
    local strategy = strategies.DDP { bucket_cap_mb = 2 }
    assert.equal(strategy, lt.Trainer({ strategy = strategy }).strategy)
    assert.equal(strategies.SingleDevice, getmetatable(lt.Trainer({}).strategy))
  end)

  it("must fit the number of ranks", function()
    assert.matches("strategy = an object of class SingleDevice is one rank: got 2",
      error_of(lt.Trainer, { strategy = strategies.SingleDevice(), devices = 2 }))
    assert.matches("strategy = an object of class Own is one rank: got 2",
      error_of(lt.Trainer, { strategy = lt.Strategy:extend("Own")(), devices = 2 }))
  end)

  it("cannot be a class", function()
    assert.matches("strategy = class DDP: must be a name, .* or an object below lt.Strategy",
      error_of(lt.Trainer, { strategy = strategies.DDP }))
  end)

  it("has its parts and the trainer's in setup", function()
    local Mine, seen = strategies.DDP:extend("Mine"), nil
    function Mine:setup(trainer)
      Mine.super.setup(self, trainer)
      seen = { self.accelerator.name, self.precision.name, trainer.module ~= nil }
    end
    tiny.trainer({ strategy = Mine() }):fit(tiny.Line(), tiny.same(1))
    assert.same({ "cpu", "32-true", true }, seen)
  end)

  it("says when setup forgets its parent's", function()
    local Mine = strategies.DDP:extend("Mine")
    function Mine:setup() end
    assert.matches("strategies.Mine: setup does not call its parent's, which moves the module "
      .. "to its device: write Mine.super.setup%(self, trainer%) in it",
      error_of(function() tiny.trainer({ strategy = Mine() }):fit(tiny.Line(), tiny.same(1)) end))
  end)

  it("does without an init of its own class calling the parent's", function()
    local Own = lt.Strategy:extend("Own")
    function Own:init() self.checkpoint_io = { save = print, load = print, remove = print } end
    local strategy = lt.Trainer({ strategy = Own() }).strategy
    assert.equal(lt.CheckpointIO, getmetatable(strategy.checkpoint_io))
    assert.equal("32-true", strategy.precision.name)
  end)
end)

describe("a checkpoint_io", function()
  -- A folder in memory.
  local function memory()
    local io = { files = {}, order = {} }
    function io:save(checkpoint, path)
      self.files[path] = checkpoint
      self.order[#self.order + 1] = "save"
      return true
    end
    function io:load(path)
      if not self.files[path] then return nil, path .. ": not in memory" end
      return self.files[path]
    end
    function io:remove(path)
      self.files[path] = nil
      self.order[#self.order + 1] = "remove"
    end
    function io:exists(path) return self.files[path] ~= nil end
    return io
  end

  it("saves, loads and removes all checkpoints of the Trainer", function()
    local store, folder = memory(), tiny.folder()
    local net = tiny.Line()
    local trainer = tiny.trainer {
      strategy = strategies.SingleDevice { checkpoint_io = store }, max_epochs = 2,
      enable_checkpointing = true,
      callbacks = { lt.callbacks.ModelCheckpoint { dirpath = folder, save_top_k = 1 } },
    }
    trainer:fit(net, tiny.same(2))
    assert.same({ "save", "save", "remove" }, store.order)
    local path = folder .. "/epoch=1-step=4.ckpt"
    assert.equal(4, store.files[path].global_step)
    assert.equal(net.w:item(), store.files[path].state_dict.w:item())
    assert.is_nil(io.open(path))

    local other = Line()
    local again = tiny.trainer { strategy = strategies.SingleDevice { checkpoint_io = store } }
    again:validate(other, tiny.same(1), { ckpt_path = path })
    assert.equal(net.w:item(), other.w:item())
    assert.matches("cannot load the checkpoint: nowhere.ckpt: not in memory", error_of(function()
      again:validate(other, tiny.same(1), { ckpt_path = "nowhere.ckpt" })
    end))
    os.remove(folder)
  end)

  it("may store the table as it likes, and training resumes from it exactly", function()
    local path = tiny.folder()
    local io = {
      save = function(_, checkpoint, where) return lt.save(where, checkpoint) end,
      load = function(_, where) return lt.load(where) end,
      remove = function(_, where) os.remove(where) end,
    }
    local function fit(epochs, options)
      lt.seed(3)
      local net = tiny.Line { lr = 0.01 }
      local trainer = tiny.trainer { strategy = strategies.DDP { checkpoint_io = io },
        max_epochs = epochs }
      trainer:fit(net, tiny.batches({ 1.0, 2.0 }, { 3.0 }), nil, options)
      return net, trainer
    end
    local wanted = fit(3)
    local _, trainer = fit(2)
    trainer:save_checkpoint(path)
    assert.equal(wanted.w:item(), (fit(3, { ckpt_path = path })).w:item())
    os.remove(path)
  end)

  it("raises with the reason that save returns", function()
    local io = memory()
    function io.save() return nil, "the store is closed" end
    local trainer = tiny.trainer { strategy = strategies.SingleDevice { checkpoint_io = io } }
    trainer:fit(tiny.Line(), tiny.same(1))
    assert.matches("save_checkpoint: the store is closed",
      error_of(trainer.save_checkpoint, trainer, "x.ckpt"))
  end)

  it("names the methods that a table lacks or misspells", function()
    local function wrong(io)
      return error_of(lt.Trainer, { strategy = strategies.DDP { checkpoint_io = io } })
    end
    assert.matches("strategies.DDP: checkpoint_io: a table needs the methods save, load, remove: "
      .. "missing: load, remove", wrong { save = print })
    assert.matches("checkpoint_io: no method is called 'sav'; did you mean 'save'%?",
      wrong { sav = print, load = print, remove = print })
    assert.matches("checkpoint_io: must be an object below lt.CheckpointIO or a plain table of its "
      .. "methods: got an object of class Precision", wrong(lt.Precision()))
  end)

  it("may wrap the usual one", function()
    local Counted, count = lt.CheckpointIO:extend("Counted"), 0
    function Counted:save(checkpoint, path)
      count = count + 1
      return lt.CheckpointIO.save(self, checkpoint, path)
    end
    local path = tiny.folder()
    local trainer = tiny.trainer { strategy = strategies.DDP { checkpoint_io = Counted() } }
    trainer:fit(tiny.Line(), tiny.same(1))
    trainer:save_checkpoint(path)
    assert.equal(1, count)
    assert.equal(1, tiny.Line:load_from_checkpoint(path).w:numel())
    os.remove(path)
  end)
end)

describe("a precision", function()
  local function double()
    return {
      name = "64-true",
      convert_module = function(_, module) module:to "f64" end,
      convert_input = function(_, batch) return batch:to "f64" end,
    }
  end

  it("converts the module and the batches", function()
    local net, dtypes = tiny.Line(), {}
    function net:training_step(x)
      dtypes[#dtypes + 1] = x.dtype
      return self:loss(x)
    end
    local trainer = tiny.trainer { strategy = strategies.DDP { precision = double() } }
    trainer:fit(net, tiny.same(2))
    assert.same({ "f64", "f64" }, dtypes)
    assert.equal("f64", net.w.dtype)
    -- w' = w - lr * mean(2 (w - 2) x^2), x = 1, 2, in doubles
    local w = 0.5
    for _ = 1, 2 do w = w - 0.1 * 2 * (w - 2) * 2.5 end
    assert.near(w, net.w:item(), 1e-14)
    assert.equal("64-true", trainer.precision_plugin.name)
  end)

  it("keeps all digits of a checkpoint", function()
    local path, net = tiny.folder(), tiny.Line()
    local trainer = tiny.trainer { strategy = strategies.DDP { precision = double() } }
    trainer:fit(net, tiny.same(3, { 0.3, 0.7 }))
    trainer:save_checkpoint(path)
    local other = Line()
    tiny.trainer({ strategy = strategies.DDP { precision = double() } })
      :validate(other, tiny.same(1, { 0.3, 0.7 }), { ckpt_path = path })
    assert.equal(net.w:item(), other.w:item())
    os.remove(path)
  end)

  it("is open around each step, and clips", function()
    local open, seen, clipped = 0, {}, nil
    local own = {}
    function own.forward_context()
      open = open + 1
      return setmetatable({}, { __close = function() open = open - 1 end })
    end
    function own.clip_gradients(_, _, value, algorithm) clipped = { value, algorithm } end
    local net = tiny.Line()
    function net:training_step(x)
      seen[#seen + 1] = open
      return self:loss(x)
    end
    local strategy = strategies.SingleDevice { precision = own }
    tiny.trainer({ strategy = strategy, gradient_clip_val = 0.5 }):fit(net, tiny.same(2))
    assert.same({ 1, 1 }, seen)
    assert.equal(0, open)
    assert.same({ 0.5, "norm" }, clipped)
  end)

  it("is named in the strategy too, but not twice", function()
    local strategy = strategies.DDP { precision = "bf16-mixed" }
    assert.equal("bf16", lt.Trainer({ strategy = strategy }).precision_plugin.autocast)
    assert.matches("strategies.DDP: precision: the Trainer's options give one too: give one",
      error_of(lt.Trainer, { strategy = strategy, precision = "bf16-mixed" }))
    assert.matches("strategies.DDP: precision: precision = '16%-mix': must be one of .*; did you "
      .. "mean '16%-mixed'?",
      error_of(lt.Trainer, { strategy = strategies.DDP { precision = "16-mix" } }))
  end)

  it("is not named twice by its usual name either", function()
    local own = { convert_module = function() end }
    for _, usual in ipairs { "32-true", 32 } do
      assert.matches("strategies.DDP: precision: the Trainer's options give one too: give one",
        error_of(lt.Trainer, { strategy = strategies.DDP { precision = own }, precision = usual }))
      assert.matches("Trainer: precision and plugins give a precision each: give one of them",
        error_of(lt.Trainer, { plugins = { own }, precision = usual }))
    end
  end)

  it("is what the Trainer's precision says, whoever named it", function()
    assert.equal("32-true", lt.Trainer().precision)
    assert.equal("bf16-mixed", lt.Trainer({ precision = "bf16-mixed" }).precision)
    local strategy = strategies.DDP { precision = "bf16-mixed" }
    assert.equal("bf16-mixed", lt.Trainer({ strategy = strategy }).precision)
  end)

  it("of the Trainer's option does not stay with a strategy that another Trainer gets", function()
    local strategy = strategies.DDP()
    lt.Trainer { strategy = strategy, precision = "bf16-mixed" }
    assert.equal("32-true", lt.Trainer({ strategy = strategy }).precision_plugin.name)
  end)
end)

describe("an accelerator", function()
  it("is set up before the module is placed, and torn down after the run", function()
    local calls = {}
    local own = {
      device = function(_, local_rank) return local_rank == 0 and "cpu" or "none" end,
      setup = function(_, trainer) calls[#calls + 1] = trainer.state.fn end,
      teardown = function() calls[#calls + 1] = "down" end,
    }
    local trainer = tiny.trainer { accelerator = own }
    trainer:fit(tiny.Line(), tiny.same(1))
    assert.same({ "fit", "down" }, calls)
    assert.equal(own, trainer.accelerator)
  end)
end)

describe("a cluster environment", function()
  it("that is one rank leaves the world as it is", function()
    local own = { world_size = function() return 1 end, global_rank = function() return 0 end }
    local strategy = strategies.DDP { cluster_environment = own }
    lt.Trainer { strategy = strategy }
    assert.equal(own, strategy.cluster_environment)
    assert.equal(1, strategy.world_size)
  end)

  it("that cannot be joined says so", function()
    local own = { world_size = function() return 4 end, global_rank = function() return 0 end }
    assert.matches("Trainer: .*4 ranks were started, and nothing says how they are connected",
      error_of(lt.Trainer, { strategy = strategies.DDP { cluster_environment = own } }))
  end)

  it("names what a table lacks", function()
    assert.matches("cluster_environment: a table needs the methods world_size, global_rank: "
      .. "missing: global_rank", error_of(lt.Trainer, { strategy = strategies.DDP {
        cluster_environment = { world_size = function() return 1 end } } }))
  end)
end)

describe("strategies.DDP", function()
  it("keeps Lightning's options that mean something", function()
    local function hook(bucket) return bucket end
    local strategy = strategies.DDP { bucket_cap_mb = 4, broadcast_buffers = false, timeout = 5,
      ddp_comm_hook = hook, process_group_backend = "shm", start_method = "fork" }
    assert.same({ 4, false, 5, hook, "shm" }, { strategy.bucket_cap_mb, strategy.broadcast_buffers,
      strategy.timeout, strategy.comm_hook, strategy.process_group_backend })
    assert.equal(25, strategies.DDP().bucket_cap_mb)
    assert.is_true(strategies.DDP().broadcast_buffers)
    assert.is_nil(strategies.DDP().comm_hook)
    assert.equal("bf16", strategies.DDP({ ddp_comm_hook = "bf16" }).comm_hook)
  end)

  it("takes its timeout as a length of time", function()
    assert.equal(300, strategies.DDP { timeout = { minutes = 5 } }.timeout)
    assert.equal(300, lt.Trainer { timeout = { minutes = 5 } }.timeout)
  end)

  it("goes by its own timeout, else by that of each Trainer", function()
    local own, other = strategies.DDP { timeout = 5 }, strategies.DDP()
    for _, seconds in ipairs { 7, 8 } do
      lt.Trainer { strategy = own, timeout = seconds }
      lt.Trainer { strategy = other, timeout = seconds }
      assert.same({ 5, seconds }, { own.timeout, other.timeout })
    end
  end)

  it("explains those that mean nothing here", function()
    local function wrong(options, words)
      assert.matches("strategies.DDP: " .. words, error_of(strategies.DDP, options))
    end
    wrong({ process_group_backend = "gloo" }, "process_group_backend = 'gloo': .*remove it")
    wrong({ process_group_backend = "x" }, "process_group_backend = 'x': must be 'shm' or 'mpi'")
    wrong({ start_method = "spawn" }, "start_method = 'spawn': is for CUDA")
    wrong({ ddp_comm_hook = "fp8" }, "ddp_comm_hook must be a function, .*'bf16', .*'fp8'")
    wrong({ parallel_devices = { 1 } }, "parallel_devices is not an option here: write devices = N")
    wrong({ ddp_comm_state = {} }, "ddp_comm_state is not an option here: .*hooks.powerSGD")
    wrong({ bucket_cap = 3 }, "unknown option 'bucket_cap'")
  end)
end)
