-- spec/trainer/nonfinite_spec.lua: gradients that are not finite never reach weights or files.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local INF <const> = math.huge

-- A line whose loss is finite and whose gradient is NaN in batch `bad`, by (x w * 0):sqrt().
local function broken(bad)
  local net = tiny.Line()
  net.v = lt.parameter(lt.tensor { 1.0 })
  function net:training_step(x, batch_idx)
    local y = self(x)
    local extra = lt.zeros(1)
    if batch_idx == bad then
      local zero = y * 0
      extra = zero:sqrt()
    end
    return self:loss(x) + extra:mean() + (self.v * self.v):mean()
  end
  return net
end

local SQRT <const> = 16 -- the line of sqrt above

-- Fits; returns the message of its error and the weight that each batch began with.
local function fit(net, options, count)
  local before = {}
  function net:on_train_batch_start(_, index) before[index] = self.w:item() end
  local trainer = tiny.trainer(options)
  local ok, message = pcall(trainer.fit, trainer, net, tiny.same(count or 4))
  return not ok and tostring(message), before, trainer
end

describe("nonfinite = 'stop'", function()
  it("ends the fit before the step, naming parameters, operations and lines", function()
    local net = broken(1)
    local message, before, trainer = fit(net)
    assert.matches("optimizer_step: the gradients of w are not finite %(epoch 0, batch 1, step 1%)",
      message)
    assert.matches(("the derivative of sqrt at [^ ]*nonfinite_spec.lua:%d made the first inf, the "
      .. "derivative of mul at [^ ]*nonfinite_spec.lua:%d the first nan"):format(SQRT, SQRT - 1),
      message)
    assert.matches("the weights are those before this step", message)
    assert.equal(before[1], net.w:item())
    assert.equal(1, trainer.global_step)
  end)

  it("names the operation that made the first nan of a loss, not the last", function()
    local net = tiny.Line()
    function net:training_step(x)
      local y = self(x)
      local root = (y - 10):log()
      return root:mean()
    end
    local message = fit(net)
    assert.matches("the loss is nan %(epoch 0, batch 0, step 0%): log at "
      .. "[^ ]*nonfinite_spec.lua:%d+ made the first nan", message)
  end)

  it("names the batch when that is not finite, and the weights when they are not", function()
    local net = tiny.Line()
    local message = tiny.error_of(function()
      tiny.trainer():fit(net, tiny.batches { 1, 0 / 0 })
    end)
    assert.matches("the loss is nan .*: batch is not finite: the weights", message)
    net.w:detach():fill_(INF)
    assert.matches("the weights are not finite already, w first", (fit(net)))
  end)

  it("runs the batch again with the random numbers that it had", function()
    local net, drawn = broken(2), {}
    local step = net.training_step
    function net:on_train_batch_start() lt.rand(1) end
    function net:training_step(x, batch_idx)
      drawn[#drawn + 1] = { batch_idx, lt.rand(1):item(), math.random() }
      return step(self, x, batch_idx)
    end
    local trainer = tiny.trainer()
    assert.is_false(pcall(trainer.fit, trainer, net, tiny.same(4)))
    assert.equal(4, #drawn)
    assert.same(drawn[3], drawn[4])
  end)

  it("finds the batch of a window that made it", function()
    local net = broken(0)
    local message = fit(net, { accumulate_grad_batches = 2 })
    assert.matches(lt.zeros(1).device == "cpu" -- else it is known when the window has ended
      and "are not finite %(epoch 0, batch 0, step 0%): the derivative of sqrt"
      or "are not finite %(epoch 0, batch 1, step 0%): in batch 0: the derivative of sqrt", message)
    assert.equal(0.5, net.w:item())
  end)

  it("looks before clipping, by norm and by value", function()
    for _, algorithm in ipairs { "norm", "value" } do
      local net = broken(1)
      local message, before = fit(net, { gradient_clip_val = 0.5,
        gradient_clip_algorithm = algorithm })
      assert.matches("the gradients of w are not finite %(epoch 0, batch 1, step 1%)", message)
      assert.equal(before[1], net.w:item())
    end
  end)

  it("lets a module's own clipping make them finite", function()
    local net = broken(1)
    function net:configure_gradient_clipping()
      local grad = self.w.grad
      if grad:isnan():any():item() then grad:fill_(0) end
    end
    local message, _, trainer = fit(net)
    assert.is_false(message)
    assert.equal(4, trainer.global_step)
  end)

  it("looks before each step of manual optimization", function()
    local net = broken(1)
    local loss = net.training_step
    net.automatic_optimization = false
    function net:training_step(x, batch_idx)
      local optimizer = self:optimizers()
      optimizer:zero_grad()
      self:manual_backward(loss(self, x, batch_idx))
      optimizer:step()
    end
    local message, before, trainer = fit(net)
    assert.matches("the gradients of w are not finite .*: the derivative of sqrt", message)
    assert.equal(before[1], net.w:item())
    assert.equal(1, trainer.global_step)
  end)

  it("stops with slices too (deterministic = 'world')", function()
    local data = lt.data.TensorDataset(lt.ones(8))
    local net = broken(0)
    local step = net.training_step
    function net:training_step(batch, batch_idx) return step(self, batch[1], batch_idx) end
    local trainer = tiny.trainer { deterministic = "world" }
    local message = tiny.error_of(trainer.fit, trainer, net,
      lt.data.DataLoader(data, { batch_size = 4 }))
    assert.matches("the gradients of w are not finite .*: the derivative of sqrt", message)
    assert.equal(0.5, net.w:item())
  end)

  it("takes the largest gradients that there are", function()
    local net = tiny.Line { lr = 1e-38 }
    function net:training_step(x) return (self(x) * 1e38):sum() end
    assert.is_false((fit(net, {}, 1)))
  end)

  it("leaves logged values and buffers as they were", function()
    local net = broken(1)
    local step = net.training_step
    net:register_buffer("seen", lt.zeros(1))
    function net:training_step(x, batch_idx)
      lt.no_grad(function() self.seen:add_(1) end)
      return step(self, x, batch_idx)
    end
    fit(net)
    assert.equal(2, net.seen:item())
  end)
end)

describe("nonfinite = 'skip'", function()
  it("leaves out the step, and counts", function()
    local net = broken(1)
    local message, before, trainer = fit(net, { nonfinite = "skip" })
    assert.is_false(message)
    assert.equal(before[1], before[2])
    assert.not_equal(before[2], before[3])
    assert.equal(3, trainer.global_step)
    assert.equal(1, trainer.progress.nonfinite)
  end)

  it("reports the first with its names, and once an epoch how many", function()
    local console, said = require "ltrain.core.console", {}
    local say = console.say
    console.say = function(text) said[#said + 1] = text end
    local net = broken(1)
    local ok, why = pcall(fit, net, { nonfinite = "skip", max_epochs = 2 })
    console.say = say
    assert(ok, why)
    local text = table.concat(said, "\n")
    local what = lt.zeros(1).device == "cpu" and "the gradients of w" or "gradients"
    assert.matches(what .. " are not finite %(epoch 0, batch 1, step 1%): the step is not taken",
      text)
    assert.not_matches("batch 1, step 4", text)
    assert.matches("epoch 0: 1 optimizer step not taken: gradients were not finite", text)
    assert.matches("epoch 1: 1 optimizer step not taken", text)
  end)

  it("keeps schedulers with the steps that were taken", function()
    local net, scheduler = broken(1), nil
    function net:configure_optimizers()
      local optimizer = lt.optim.SGD(self:parameters(), { lr = 0.1 })
      scheduler = lt.optim.StepLR(optimizer, 1, { gamma = 0.5 })
      return { optimizer = optimizer, lr_scheduler = { scheduler = scheduler, interval = "step" } }
    end
    fit(net, { nonfinite = "skip" })
    assert.equal(3, scheduler.last_epoch)
  end)

  it("leaves out a window and the next one is clean", function()
    local net = broken(1)
    local message, _, trainer = fit(net, { nonfinite = "skip", accumulate_grad_batches = 2 })
    assert.is_false(message)
    assert.equal(1, trainer.global_step)
    assert.is_true(net.w:item() == net.w:item())
  end)
end)

describe("nonfinite = 'allow'", function()
  it("takes the step, and saves what comes of it", function()
    local net, folder = broken(1), tiny.folder()
    local message, _, trainer = fit(net, { nonfinite = "allow" })
    assert.is_false(message)
    assert.not_equal(net.w:item(), net.w:item())
    trainer:save_checkpoint(folder .. "/nan.ckpt")
    local saved = assert(lt.load(folder .. "/nan.ckpt"))
    assert.is_table(saved)
    os.execute("rm -r " .. folder)
  end)
end)

describe("a checkpoint", function()
  local function spoilt()
    local net = tiny.Line()
    function net:on_train_batch_end()
      lt.allow_update(function() self.w:fill_(0 / 0) end)
    end
    return net
  end

  it("with weights that are not finite is an error", function()
    local trainer, net = tiny.trainer(), tiny.Line()
    trainer:fit(net, tiny.same(1))
    lt.allow_update(function() net.w:fill_(0 / 0) end)
    assert.matches("save_checkpoint: the weights of w are not finite: nothing is saved",
      tiny.error_of(trainer.save_checkpoint, trainer, tiny.folder()))
  end)

  it("is written with parameters that are integers, and names only what is not finite", function()
    local trainer, net = tiny.trainer(), tiny.Line()
    net.steps = lt.parameter(lt.tensor({1, 2, 3}, {dtype = "i64"}), {requires_grad = false})
    trainer:fit(net, tiny.same(1))
    trainer:save_checkpoint(tiny.folder() .. "/whole.ckpt")
    lt.allow_update(function() net.w:fill_(1 / 0) end)
    assert.matches("save_checkpoint: the weights of w are not finite: nothing is saved",
      tiny.error_of(trainer.save_checkpoint, trainer, tiny.folder()))
  end)

  it("of a callback is none either, nor at an error", function()
    local folder = tiny.folder()
    local trainer = tiny.trainer { enable_checkpointing = true, callbacks = {
      lt.callbacks.ModelCheckpoint { dirpath = folder, save_on_exception = true } } }
    assert.matches("the weights of w are not finite", tiny.error_of(trainer.fit, trainer, spoilt(),
      tiny.same(1)))
    local list = require "ltrain.c".io.list_folder(folder) or {}
    assert.same({}, list)
  end)

  it("of a run that is interrupted is none, and the interrupt remains", function()
    local folder, net = tiny.folder(), spoilt()
    local runtime = require "ltrain.c".runtime
    local pressed = runtime.interrupted
    function net.on_after_backward() runtime.interrupted = function() return 1, 2 end end
    local trainer = tiny.trainer { default_root_dir = folder }
    local message = tiny.error_of(trainer.fit, trainer, net, tiny.same(2))
    runtime.interrupted = pressed
    assert.equal("interrupted", message)
    assert.is_nil(require "ltrain.c".io.list_folder(folder .. "/checkpoints"))
  end)
end)

describe("detect_anomaly", function()
  it("raises at the operation whose result is nan", function()
    local net = tiny.Line()
    function net:training_step(x)
      local y = self(x)
      local root = (y - 10):sqrt()
      return root:mean()
    end
    assert.matches("nonfinite_spec.lua:%d+: sqrt: the result is nan, its inputs are not",
      (fit(net, { detect_anomaly = true })))
  end)

  it("raises at the operation whose derivative is nan", function()
    assert.matches(("backward: the derivative of mul at [^ ]*nonfinite_spec.lua:%d is nan; the "
      .. "first inf was made by sqrt at [^ ]*nonfinite_spec.lua:%d"):format(SQRT - 1, SQRT),
      (fit(broken(1), { detect_anomaly = true })))
  end)
end)
