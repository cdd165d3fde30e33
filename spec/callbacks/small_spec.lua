-- spec/callbacks/small_spec.lua: LambdaCallback, OnExceptionCheckpoint, DeviceStatsMonitor,
-- ThroughputMonitor, GradientAccumulationScheduler.
local lt = require "ltrain"
local support = require "spec.dist.support"
local tiny = require "spec.trainer.tiny"

local callbacks <const> = lt.callbacks

-- A logger that keeps rows.
local function logger()
  local Rows = lt.Logger:extend("Rows")
  local rows = {}
  function Rows.log_metrics(_, row, step) rows[#rows + 1] = { row = row, step = step } end
  return Rows(), rows
end

-- All names in rows that have `part`, each once, sorted.
local function names_in(rows, part)
  local seen, list = {}, {}
  for _, one in ipairs(rows) do
    for name in pairs(one.row) do
      if name:find(part, 1, true) and not seen[name] then
        seen[name] = true
        list[#list + 1] = name
      end
    end
  end
  table.sort(list)
  return list
end

describe("LambdaCallback", function()
  it("calls functions with the trainer and the module", function()
    local seen, net = {}, tiny.Line()
    local callback = callbacks.LambdaCallback {
      on_train_batch_end = function(trainer, module, _, _, batch_idx)
        assert.equal(net, module)
        seen[#seen + 1] = trainer.global_step * 10 + batch_idx
      end,
    }
    tiny.trainer({ callbacks = { callback } }):fit(net, tiny.same(2))
    assert.same({ 10, 21 }, seen)
  end)

  it("runs on all ranks if that is said", function()
    local out = support.ranks(2, [[
      local net = lt.nn.Linear(1, 1)
      function net:training_step(x) return self(x):square():mean() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      local callback = lt.callbacks.LambdaCallback{all_ranks = true,
        on_train_end = function() io.write("rank ", lt.dist.rank(), "\n") end}
      lt.Trainer{max_epochs = 1, logger = false, enable_checkpointing = false,
        enable_progress_bar = false, enable_model_summary = false, callbacks = {callback}}
        :fit(net, {lt.ones(2, 1)})
    ]])
    assert.matches("rank 0", out)
    assert.matches("rank 1", out)
  end)

  it("reports what is not a hook, and what is not a function", function()
    assert.matches("there is no hook 'on_trian_start'; did you mean 'on_train_start'",
      tiny.error_of(callbacks.LambdaCallback, { on_trian_start = print }))
    assert.matches("on_train_start must be a function: got 3",
      tiny.error_of(callbacks.LambdaCallback, { on_train_start = 3 }))
    assert.matches("all_ranks must be true or false: got 1",
      tiny.error_of(callbacks.LambdaCallback, { all_ranks = 1 }))
  end)
end)

describe("OnExceptionCheckpoint", function()
  it("saves the state before the batch that failed, from which fit continues", function()
    local folder, net, broken = tiny.folder(), tiny.Line(), true
    function net:training_step(x, batch_idx)
      if broken and batch_idx == 2 then error "broken" end
      return self:loss(x)
    end
    local callback = callbacks.OnExceptionCheckpoint { dirpath = folder, filename = "broke" }
    local trainer = tiny.trainer({ callbacks = { callback } })
    assert.matches("broken", tiny.error_of(trainer.fit, trainer, net, tiny.same(4)))
    broken = false
    local rest, whole = tiny.Line(), tiny.Line()
    tiny.trainer():fit(rest, tiny.same(4), { ckpt_path = folder .. "/broke.ckpt" })
    tiny.trainer():fit(whole, tiny.same(4))
    assert.equal(whole.w:item(), rest.w:item())
  end)

  it("saves nothing where validate fails", function()
    local folder, net = tiny.folder(), tiny.Line()
    function net.validation_step() error "broken" end
    local trainer = tiny.trainer({
      callbacks = { callbacks.OnExceptionCheckpoint { dirpath = folder } } })
    pcall(trainer.validate, trainer, net, tiny.same(1))
    assert.is_nil(io.open(folder .. "/on_exception.ckpt"))
    assert.matches("unknown option 'dir'", tiny.error_of(callbacks.OnExceptionCheckpoint,
      { dir = "x" }))
  end)
end)

describe("DeviceStatsMonitor", function()
  it("logs memory and load of the CPU at batches", function()
    local log, rows = logger()
    tiny.trainer({ callbacks = { callbacks.DeviceStatsMonitor() }, logger = log,
      log_every_n_steps = 1 }):fit(tiny.Line(), tiny.same(3))
    assert.same({ "DeviceStatsMonitor.on_train_batch_end/cpu_rss_bytes",
      "DeviceStatsMonitor.on_train_batch_start/cpu_rss_bytes" }, names_in(rows, "rss"))
    for _, one in ipairs(rows) do
      for name, value in pairs(one.row) do
        if name:find "rss" then assert.is_true(value > 1e6 and value < 1e12) end
        if name:find "vm_percent" then assert.is_true(value > 0 and value <= 100) end
      end
    end
  end)

  it("logs memory of a device, and what is asked for", function()
    local log, rows = logger()
    tiny.trainer({ accelerator = "fake", devices = 1, logger = log, log_every_n_steps = 1,
      callbacks = { callbacks.DeviceStatsMonitor { filter_keys = { "allocated" } } },
      }):fit(tiny.Line(), tiny.same(2))
    assert.same({ "DeviceStatsMonitor.on_train_batch_end/max_memory_allocated",
      "DeviceStatsMonitor.on_train_batch_end/memory_allocated",
      "DeviceStatsMonitor.on_train_batch_start/max_memory_allocated",
      "DeviceStatsMonitor.on_train_batch_start/memory_allocated" }, names_in(rows, "Device"))
  end)

  it("needs a logger", function()
    local trainer = tiny.trainer({ callbacks = { callbacks.DeviceStatsMonitor() } })
    assert.matches("DeviceStatsMonitor: there is no logger",
      tiny.error_of(trainer.fit, trainer, tiny.Line(), tiny.same(1)))
  end)
end)

describe("ThroughputMonitor", function()
  it("logs totals and rates over the window", function()
    local log, rows = logger()
    local monitor = callbacks.ThroughputMonitor { window_size = 3, flops_per_batch = 100,
      available_flops = 1000, batch_size_fn = function(x) return #x end,
      length_fn = function(x) return 10 * #x end }
    local trainer = tiny.trainer({ callbacks = { monitor }, logger = log, log_every_n_steps = 1 })
    local time = 0.0
    function trainer.now()
      time = time + 0.5
      return time
    end
    trainer:fit(tiny.Line(), tiny.same(5))
    local last = rows[#rows].row
    assert.equal(5, last["train/batches"])
    assert.equal(10, last["train/samples"])
    assert.equal(100, last["train/items"])
    assert.near(2 * last["train/device/batches_per_sec"], last["train/device/samples_per_sec"],
      1e-9)
    assert.near(20 * last["train/device/batches_per_sec"], last["train/device/items_per_sec"],
      1e-9)
    assert.near(last["train/device/batches_per_sec"] / 10, last["train/device/mfu"], 1e-9)
    assert.is_true(last["train/device/batches_per_sec"] > 0)
    assert.is_nil(last["train/batches_per_sec"])
  end)

  it("reports what does not fit", function()
    assert.matches("option 'batch_size_fn' is required",
      tiny.error_of(callbacks.ThroughputMonitor, {}))
    assert.matches("available_flops needs flops_per_batch",
      tiny.error_of(callbacks.ThroughputMonitor,
        { batch_size_fn = print, available_flops = 1 }))
    local trainer = tiny.trainer({ callbacks = {
      callbacks.ThroughputMonitor { batch_size_fn = function() return "two" end } } })
    assert.matches("batch_size_fn must return a number: got 'two'",
      tiny.error_of(trainer.fit, trainer, tiny.Line(), tiny.same(1)))
  end)
end)

describe("GradientAccumulationScheduler", function()
  local function scheduler(schedule)
    return callbacks.GradientAccumulationScheduler(schedule)
  end

  local function steps_of(options, net, batches)
    local steps = {}
    net = net or tiny.Line()
    function net:on_train_epoch_end() steps[#steps + 1] = self.trainer.global_step end
    local trainer = tiny.trainer(options)
    trainer:fit(net, batches or tiny.same(4))
    return steps, trainer
  end

  it("changes the batches of a step by epochs", function()
    local steps = steps_of { max_epochs = 4, callbacks = { scheduler { [1] = 2, [3] = 4 } } }
    assert.same({ 4, 6, 8, 9 }, steps)
  end)

  it("resumes in mid-epoch", function()
    local path, net = tiny.folder(), tiny.Line()
    local _, cut = steps_of({ max_epochs = 3, max_steps = 5,
      callbacks = { scheduler { [1] = 2 } } }, net)
    cut:save_checkpoint(path)
    local rest, whole = tiny.Line(), tiny.Line()
    tiny.trainer({ max_epochs = 3, callbacks = { scheduler { [1] = 2 } } }):fit(rest,
      tiny.same(4), { ckpt_path = path })
    steps_of({ max_epochs = 3, callbacks = { scheduler { [1] = 2 } } }, whole)
    assert.equal(whole.w:item(), rest.w:item())
  end)

  it("reports what does not fit", function()
    assert.matches("a table of epochs and numbers of batches is needed: got a table",
      tiny.error_of(scheduler, {}))
    assert.matches("numbers of batches from 1: got %[2%] = 0",
      tiny.error_of(scheduler, { [2] = 0 }))
    local trainer = tiny.trainer({ accumulate_grad_batches = 2, callbacks = { scheduler { 2 } } })
    assert.matches("the Trainer has accumulate_grad_batches = 2",
      tiny.error_of(trainer.fit, trainer, tiny.Line(), tiny.same(1)))
  end)
end)
