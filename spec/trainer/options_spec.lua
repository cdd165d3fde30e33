-- spec/trainer/options_spec.lua: the Trainer's options: checks, removed names, the command line.
local lt = require "ltrain"
local options = require "ltrain.trainer.setup.options"
local overrides = require "ltrain.trainer.setup.overrides"
local tiny = require "spec.trainer.tiny"

local function message(o)
  return tiny.error_of(lt.Trainer, o)
end

describe("lt.Trainer", function()
  it("takes every option at its default", function()
    local all = {}
    for name, row in pairs(options) do
      if row.default ~= nil then all[name] = row.default end
    end
    local trainer = lt.Trainer(all)
    assert.equal(1000, trainer.max_epochs)
    assert.equal(-1, trainer.max_steps)
  end)

  it("says what each option means", function()
    for name, row in pairs(options) do
      assert(type(row.doc) == "string" and #row.doc > 5, name)
    end
  end)

  it("names the nearest option", function()
    assert.matches("Trainer: unknown option 'max_epoch'; did you mean 'max_epochs'%?",
      message { max_epoch = 3 })
  end)

  it("says in a sentence what became of removed options", function()
    assert.matches("Trainer: ipus is not an option: there are no IPUs here: write devices",
      message { ipus = 1 })
    assert.matches("resume_from_checkpoint is not an option: write trainer:fit",
      message { resume_from_checkpoint = "x" })
  end)

  it("takes the time between snapshots, or false", function()
    for given, seconds in pairs { [0] = 0, [2.5] = 2.5, ["10 s"] = 10, ["2 min"] = 120,
      ["1.5h"] = 5400, ["00:00:01:00"] = 60 } do
      assert.equal(seconds, lt.Trainer { snapshot_every = given }.snapshot_every)
    end
    assert.equal(30, lt.Trainer { snapshot_every = { seconds = 30 } }.snapshot_every)
    assert.equal(10, lt.Trainer {}.snapshot_every)
    assert.is_false(lt.Trainer { snapshot_every = false }.snapshot_every)
    for _, wrong in ipairs { "0", "10 m", "soon", true, -1 } do
      assert.matches("Trainer: snapshot_every must be .* got", message { snapshot_every = wrong })
    end
  end)

  it("refuses values out of range", function()
    assert.matches("max_epochs must be at least %-1: got %-2", message { max_epochs = -2 })
    assert.matches("limit_train_batches must not be negative", message { limit_train_batches = -1 })
    assert.matches("limit_val_batches must be an integer %(batches%) or a fraction",
      message { limit_val_batches = 1.5 })
    assert.matches("fast_dev_run must be at least 0: got %-1", message { fast_dev_run = -1 })
    assert.matches("max_time must be 'DD:HH:MM:SS'.* got '10 minutes'",
      message { max_time = "10 minutes" })
  end)

  it("checks the scaling rules", function()
    assert.same({ batch = "per_rank", lr = "keep" },
      lt.Trainer({ elastic = { batch = "per_rank" } }).options.elastic)
    assert.matches("Trainer: elastic: batch must be 'global' or 'per_rank': got 'world'",
      message { elastic = { batch = "world" } })
    assert.matches("Trainer: elastic has lr = 'linear' with batch = 'global', where the global "
      .. "batch, and so the learning rate, stays", message { elastic = { lr = "linear" } })
    assert.matches("Trainer: elastic: unknown option 'batches'; did you mean 'batch'%?",
      message { elastic = { batches = "global" } })
  end)

  it("refuses options that contradict each other", function()
    assert.matches("overfit_batches sets", message { overfit_batches = 1, limit_train_batches = 2 })
    assert.matches("enable_progress_bar = false, but there is a ProgressBar", message {
      enable_progress_bar = false, callbacks = { lt.callbacks.ProgressBar() } })
    for _, name in ipairs { "limit_train_batches", "limit_val_batches" } do
      assert.matches("overfit_batches sets", message { overfit_batches = 1, [name] = 1.0 })
    end
    assert.matches("there are 2 progress bars among the callbacks: give one of them", message {
      callbacks = { lt.callbacks.ProgressBar(), lt.callbacks.ProgressBar() } })
  end)

  it("refuses beside barebones what it turns off", function()
    for name, value in pairs { enable_checkpointing = true, logger = true, detect_anomaly = true,
      enable_progress_bar = true, enable_model_summary = true, log_every_n_steps = 50,
      num_sanity_val_steps = 2, fast_dev_run = 1 } do
      assert.matches("Trainer: barebones sets " .. name .. " = [%w]+: give one of them",
        message { barebones = true, [name] = value })
    end
    for _, name in ipairs { "ModelCheckpoint", "ProgressBar", "ModelSummary" } do
      assert.matches("barebones = true, but there is a " .. name .. " among the callbacks",
        message { barebones = true, callbacks = { lt.callbacks[name]() } })
    end
    local trainer = lt.Trainer { barebones = true, max_time = 60, logger = false,
      num_sanity_val_steps = 0, fast_dev_run = 0 }
    assert.same({ 1, 0, 0 }, { #trainer.callbacks, #trainer.loggers, trainer.log_every_n_steps })
    assert.equal(60, trainer.callbacks[1].duration)
  end)

  it("takes fast_dev_run = 0 as off", function()
    local trainer = lt.Trainer { fast_dev_run = 0, max_epochs = 3 }
    assert.same({ false, 3, 1.0 },
      { trainer.fast_dev_run, trainer.max_epochs, trainer.limit_train_batches })
  end)

  it("takes deterministic = 'world', and what goes with it", function()
    for _, value in ipairs { true, false, "warn", "world" } do
      assert.equal(value, lt.Trainer({ deterministic = value }).options.deterministic)
    end
    assert.matches("deterministic must be true, false, 'warn' or 'world': got 'all'",
      message { deterministic = "all" })
    assert.equal(2, lt.Trainer({ deterministic = "world", world_threads = 2 })
      .options.world_threads)
    assert.matches("world_threads needs deterministic = 'world'", message { world_threads = 2 })
    assert.matches("sync_batchnorm and deterministic = 'world' exclude each other",
      message { deterministic = "world", sync_batchnorm = true })
  end)

  it("takes the device that is there and says what is missing", function()
    for _, devices in ipairs { 1, "1", "auto" } do
      assert.equal("cpu", lt.Trainer({ devices = devices }).strategy.root_device)
    end
    assert.equal("cpu", lt.Trainer({ accelerator = "cpu" }).strategy.root_device)
    assert.matches("accelerator = 'gpu': ", message { accelerator = "gpu" })
  end)

  it("takes a number of ranks, and nothing else, as devices", function()
    assert.matches("devices = 1000000000: at most 1024 ranks can be one job",
      message { devices = 1e9 })
    assert.matches("devices = '1025': at most 1024 ranks", message { devices = "1025" })
    assert.matches("devices = %-1: the CPU has no number of devices: write devices = N",
      message { devices = -1 })
    assert.matches("devices = .*: the CPU has no device numbers: write devices = N",
      message { devices = { 0, 1 } })
    assert.matches("devices = 0: must be a number of ranks", message { devices = 0 })
    assert.matches("num_nodes = 2: ranks on several machines are started by mpirun or srun",
      message { num_nodes = 2 })
  end)

  it("knows the names of strategies", function()
    assert.equal("SingleDevice", getmetatable(lt.Trainer({}).strategy).__name)
    assert.equal("DDP", getmetatable(lt.Trainer({ devices = 2 }).strategy).__name)
    for _, name in ipairs { "ddp", "ddp_fork", "ddp_notebook" } do
      assert.equal("DDP", getmetatable(lt.Trainer({ strategy = name }).strategy).__name)
    end
    assert.matches("strategy = 'ddp_spawn': is for CUDA", message { strategy = "ddp_spawn" })
    assert.matches("strategy = 'dpd': must be one of .*; did you mean 'ddp'?",
      message { strategy = "dpd" })
    assert.matches("strategy = 'single_device' is one rank: got 2",
      message { strategy = "single_device", devices = 2 })
  end)

  it("takes precisions by their names", function()
    assert.equal("32-true", lt.Trainer({ precision = 32 }).precision_plugin.name)
    assert.equal("bf16", lt.Trainer({ precision = "bf16-mixed" }).precision_plugin.autocast)
    assert.matches("precision = 'half': must be one of 16%-mixed, .*, bf16%-true",
      message { precision = "half" })
  end)

  it("runs the steps in the precision", function()
    local net, dtype = tiny.Line(), nil
    net.head = lt.nn.Linear(2, 1)
    function net:training_step(x)
      local y = self.head(x:reshape { 1, 2 })
      dtype = y.dtype
      return y:to("f32"):sum()
    end
    tiny.trainer({ precision = "bf16-mixed" }):fit(net, tiny.same(1))
    assert.equal("bf16", dtype)
  end)
end)

describe("the command line", function()
  after_each(function() overrides.values = {} end)

  it("wins over the script", function()
    overrides.set("max_epochs", 7)
    assert.equal(7, lt.Trainer({ max_epochs = 2 }).max_epochs)
    overrides.set("max_epochs", -5)
    assert.matches("max_epochs must be at least", message {})
  end)

  it("sees that a loop was called", function()
    local before = overrides.ran
    tiny.trainer():fit(tiny.Line(), tiny.same(1))
    assert.equal(before + 1, overrides.ran)
  end)
end)

describe("the arguments of a loop", function()
  it("are checked", function()
    local trainer, net = tiny.trainer(), tiny.Line()
    local function wrong(...)
      return tiny.error_of(trainer.fit, trainer, ...)
    end
    assert.matches("fit: a module is needed: got nil", wrong(nil, tiny.same(1)))
    assert.matches("unknown option 'ckpt_pth'; did you mean 'ckpt_path'%?",
      wrong(net, tiny.same(1), { ckpt_pth = "x" }))
    assert.matches("a loader must be a DataLoader, a table of batches", wrong(net, 3))
    assert.matches("one argument too many", wrong(net, tiny.same(1), tiny.same(1), tiny.same(1)))
    local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 1)))
    assert.matches("fit: unknown option 'a': give loaders by name as {train = {...}}",
      wrong(net, { a = loader, train = loader }))
    assert.matches("CombinedLoader: b must be a loader",
      wrong(net, { train = { a = loader, b = 3 } }))
    assert.matches("loaders and a DataModule are given",
      wrong(net, tiny.same(1), { datamodule = { train_dataloader = print } }))
    assert.matches("Line is a class: call it to make a module", wrong(tiny.Line, tiny.same(1)))
  end)
end)
