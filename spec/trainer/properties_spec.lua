-- spec/trainer/properties_spec.lua: what a Trainer says of its parts when it is asked.
local c = require "ltrain.c"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local CPU <const> = { device = function() return "cpu" end }
local FAKE <const> = { device = function() return "fake:0" end }

describe("a Trainer", function()
  it("has its first checkpoint and early stopping callbacks as properties", function()
    local one, two = lt.callbacks.ModelCheckpoint(), lt.callbacks.ModelCheckpoint()
    local stop = lt.callbacks.EarlyStopping { monitor = "loss" }
    local trainer = tiny.trainer { enable_checkpointing = true, callbacks = { one, stop, two } }
    assert.equal(one, trainer.checkpoint_callback)
    assert.equal(stop, trainer.early_stopping_callback)
    assert.is_nil(tiny.trainer().checkpoint_callback)
    assert.is_nil(tiny.trainer().early_stopping_callback)
    local Own = lt.Trainer:extend("Own")
    assert.equal("ModelCheckpoint", getmetatable(Own().checkpoint_callback).__name)
  end)

  it("has lists of all of them", function()
    local one, two = lt.callbacks.ModelCheckpoint(), lt.callbacks.ModelCheckpoint()
    local stop = lt.callbacks.EarlyStopping { monitor = "loss" }
    local trainer = tiny.trainer { enable_checkpointing = true, callbacks = { one, stop, two } }
    assert.same({ true, true, 2 }, { one == trainer.checkpoint_callbacks[1],
      two == trainer.checkpoint_callbacks[2], #trainer.checkpoint_callbacks })
    assert.equal(stop, trainer.early_stopping_callbacks[1])
    assert.same({}, tiny.trainer().checkpoint_callbacks)
    assert.same({}, tiny.trainer().early_stopping_callbacks)
  end)

  it("has the numbers of the devices of this machine's ranks", function()
    assert.same({ { 0 }, 1 }, { tiny.trainer().device_ids, tiny.trainer().num_devices })
    local many = tiny.trainer { accelerator = CPU, devices = 3 }
    assert.same({ { 0, 1, 2 }, 3 }, { many.device_ids, many.num_devices })
    local two = { device = function(_, rank) return ("fake:%d"):format(1 - rank) end }
    assert.same({ 1, 0 }, tiny.trainer { accelerator = two, devices = 2 }.device_ids)
    local one = tiny.trainer { strategy = lt.strategies.SingleDevice { device = "fake:1" } }
    assert.same({ { 1 }, 1 }, { one.device_ids, one.num_devices })
  end)

  it("is evaluating while it validates, tests, or checks validation before training", function()
    local seen = {}
    local net = tiny.Line()
    local function note(self)
      local stage = self.trainer.state.stage
      seen[stage] = self.trainer.evaluating
    end
    net.on_train_start, net.validation_step = note, note
    net.test_step, net.predict_step = note, note
    local trainer = tiny.trainer { num_sanity_val_steps = 1 }
    assert.is_false(trainer.evaluating)
    trainer:fit(net, tiny.same(1), tiny.same(1))
    trainer:test(net, tiny.same(1), { verbose = false })
    trainer:predict(net, tiny.same(1))
    assert.same({ train = false, validation = true, sanity_check = true, test = true,
      predict = false }, seen)
    assert.is_false(trainer.evaluating)
  end)

  it("makes a module with the dtype of its precision, on its device", function()
    local trainer = tiny.trainer { precision = "64-true",
      strategy = lt.strategies.SingleDevice { device = "fake:1" } }
    local net = trainer:init_module(function() return lt.nn.Linear(2, 1) end)
    assert.same({ "f64", "fake:1" }, { net.weight.dtype, net.weight.device })
    local function on_cpu() return lt.nn.Linear(2, 1):to "cpu" end
    local ddp = tiny.trainer { accelerator = FAKE, devices = 1, strategy = "ddp" }
    assert.equal("fake:0", ddp:init_module(on_cpu).weight.device)
    ddp = tiny.trainer { accelerator = FAKE, devices = 2 } -- ranks that fit has yet to start
    assert.equal("cpu", ddp:init_module(on_cpu).weight.device)
    assert.matches("init_module: the function must return a module: got 3",
      tiny.error_of(trainer.init_module, trainer, function() return 3 end))
    assert.matches("init_module: pass a function that returns the module: got nil",
      tiny.error_of(trainer.init_module, trainer))
  end)

  it("has the file that a run began with as ckpt_path", function()
    local path = tiny.folder() .. ".ckpt"
    local first = tiny.trainer()
    first:fit(tiny.Line(), tiny.same(1))
    assert.is_nil(first.ckpt_path)
    first:save_checkpoint(path)
    local trainer = tiny.trainer { max_epochs = 2 }
    trainer:fit(tiny.Line(), tiny.same(1), { ckpt_path = path })
    assert.equal(path, trainer.ckpt_path)
    trainer:fit(tiny.Line(), tiny.same(1))
    assert.is_nil(trainer.ckpt_path)
    os.remove(path)
  end)

  it("says whether SIGTERM has come, before and after it was acted on", function()
    local root = tiny.folder()
    local trainer = tiny.trainer { default_root_dir = root, max_epochs = 2 }
    assert.is_false(trainer.received_sigterm)
    local net, asked = tiny.Line(), c.runtime.interrupted
    local before
    function net:on_after_backward()
      before = self.trainer.received_sigterm
      c.runtime.interrupted = function() return 1, 15 end
    end
    local ok = pcall(trainer.fit, trainer, net, tiny.same(2))
    c.runtime.interrupted = asked
    os.execute("rm -rf '" .. root .. "'")
    assert.is_false(ok)
    assert.is_false(before)
    assert.is_true(trainer.received_sigterm)
  end)
end)

describe("an option of a Trainer", function()
  local options <const> = require "ltrain.trainer.setup.options"
  local tree <const> = require "ltrain.core.tree"

  it("can be read as it was given", function()
    local given = { gradient_clip_val = 0.5, gradient_clip_algorithm = "value", min_steps = 3,
      min_epochs = 1, reload_dataloaders_every_n_epochs = 2, overfit_batches = 2, num_nodes = 1,
      nonfinite = "skip", val_check_interval = 0.5, log_every_n_steps = 7 }
    local trainer = tiny.trainer(given)
    for name, value in pairs(given) do assert.equal(value, trainer[name], name) end
    assert.is_true(tiny.trainer { barebones = true, logger = nil }.barebones)
  end)

  it("can be read whichever it is, where it has a default", function()
    local trainer = tiny.trainer()
    for name, row in tree.pairs(options) do
      if row.default ~= nil and name ~= "logger" then assert.is_not_nil(trainer[name], name) end
    end
  end)

  it("has its effect when it is assigned", function()
    local net, trainer = tiny.Line { lr = 1 }, tiny.trainer()
    trainer.gradient_clip_val = 0.25
    trainer:fit(net, tiny.batches { 1.0 })
    assert.near(0.75, net.w:item(), 1e-6) -- 0.5 + 1 * 0.25
  end)

  it("that is min_steps keeps a fit from stopping", function()
    local trainer, net = tiny.trainer(), tiny.Line()
    trainer.min_steps = 3
    function net.on_train_batch_end(own) own.trainer.should_stop = true end
    trainer:fit(net, tiny.same(5))
    assert.equal(3, trainer.global_step)
  end)

  it("is checked when it is assigned", function()
    assert.match("trainer: gradient_clip_val must be a number: got 'x'", tiny.error_of(function()
      tiny.trainer().gradient_clip_val = "x"
    end), 1, true)
  end)

  it("that has no effect later cannot be assigned, with the line", function()
    for name, value in pairs { precision = "bf16-true", num_nodes = 2, barebones = true,
      fast_dev_run = true, devices = 2, strategy = "ddp", accelerator = "gpu" } do
      local message = tiny.error_of(function() tiny.trainer()[name] = value end)
      assert.match("properties_spec.lua:%d+: trainer." .. name .. ": cannot be changed", message)
    end
  end)

  it("that is logger replaces the loggers", function()
    local trainer, rows = tiny.trainer(), lt.Logger()
    trainer.logger = rows
    assert.same({ rows }, trainer.loggers)
    trainer.logger = false
    assert.same({}, trainer.loggers)
  end)
end)
