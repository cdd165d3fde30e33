-- spec/trainer/scaling_spec.lua: precision = "16-mixed": scaled losses, steps that are left out.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local INF <const> = math.huge

-- A Trainer in f16 with a scaler, whose scale begins at `scale`; on any device.
local function trainer_of(scale, options)
  local precision = { name = "16-mixed", autocast = "f16",
    scaler = lt.GradScaler { init_scale = scale or 8, growth_interval = 1000 } }
  local o = { strategy = lt.strategies.SingleDevice { precision = precision } }
  for name, value in pairs(options or {}) do o[name] = value end
  return tiny.trainer(o)
end

-- A line whose gradient is infinite in the batches of the set `bad`; `optimizer` makes its own.
local function line(bad, optimizer)
  local net = tiny.Line()
  function net:training_step(x, batch_idx)
    local loss = self:loss(x)
    return bad[batch_idx] and loss * INF or loss
  end
  function net:configure_optimizers()
    if optimizer then return optimizer(self:parameters()) end
    return lt.optim.Adam(self:parameters(), { lr = 0.125 })
  end
  return net
end

-- The weight after `count` batches of f32 without a scaler.
local function reference(count, optimizer, options)
  local net = line({}, optimizer)
  tiny.trainer(options):fit(net, tiny.same(count))
  return net.w:item()
end

local function said_by(fn)
  local said, console = {}, require "ltrain.core.console"
  local own = console.say
  console.say = function(text) said[#said + 1] = text end
  local ok, message = pcall(fn)
  console.say = own
  assert(ok, message)
  return table.concat(said, "\n")
end

describe("a fit with a scaler", function()
  it("steps by unscaled gradients, and hands hooks the unscaled ones", function()
    local net, seen = line {}, {}
    function net:on_after_backward() seen.scaled = self.w.grad:item() end
    function net:on_before_optimizer_step() seen.real = self.w.grad:item() end
    local trainer = trainer_of(8)
    trainer:fit(net, tiny.same(1))
    assert.equal(8.0, seen.scaled / seen.real)
    assert.near(2 * (0.5 - 2) * 2.5, seen.real, 1e-2) -- products in f16
    assert.equal(1, trainer.global_step)
    assert.equal(trainer.scaler, trainer.precision_plugin.scaler)
  end)

  it("leaves out steps that overflow: no counter, no average moves, the scale shrinks", function()
    local net = line { [0] = true, [2] = true, [5] = true }
    local trainer = trainer_of(8)
    local text = said_by(function() trainer:fit(net, tiny.same(6)) end)
    assert.equal(reference(3), net.w:item())
    assert.equal(3, trainer.global_step)
    assert.equal(3, trainer.optimizers[1].state[net.w].step)
    assert.equal(1.0, trainer.scaler:get_scale())
    assert.matches("epoch 0: 3 optimizer steps not taken: gradients were not finite; the scale of "
      .. "the loss is 1 now", text, 1, true)
  end)

  it("moves no scheduler of steps, and calls no hook after a step that was left out", function()
    local net, steps = line { [1] = true, [3] = true }, 0
    function net:configure_optimizers()
      local optimizer = lt.optim.SGD(self:parameters(), { lr = 1 / 64 })
      local scheduler = lt.optim.StepLR(optimizer, 1, { gamma = 0.5 })
      return { optimizer = optimizer, lr_scheduler = { scheduler = scheduler, interval = "step" } }
    end
    function net:on_after_optimizer_step() steps = steps + 1 end
    local trainer = trainer_of(8)
    trainer:fit(net, tiny.same(4))
    assert.same({ 2, 2 }, { steps, trainer.global_step })
    assert.equal(1 / 256, trainer.optimizers[1].param_groups[1].lr)
  end)

  it("stops at max_steps taken", function()
    local net = line { [0] = true, [3] = true }
    local trainer = trainer_of(8, { max_steps = 3, max_epochs = -1 })
    trainer:fit(net, tiny.same(8))
    assert.equal(3, trainer.global_step)
    assert.equal(reference(3), net.w:item())
  end)

  for _, algorithm in ipairs { "norm", "value" } do
    it("clips unscaled gradients, by " .. algorithm, function()
      local options = { gradient_clip_val = 0.25, gradient_clip_algorithm = algorithm }
      local function sgd(parameters) return lt.optim.SGD(parameters, { lr = 0.5 }) end
      local net, trainer = line({ [1] = true }, sgd), trainer_of(1024, options)
      trainer:fit(net, tiny.same(3))
      assert.equal(reference(2, sgd, options), net.w:item())
      assert.near(0.5 + 2 * 0.5 * 0.25, net.w:item(), 1e-5)
    end)
  end

  it("accumulates with one scale, and leaves out a window with an overflow", function()
    local net, trainer = line { [1] = true }, trainer_of(8, { accumulate_grad_batches = 2 })
    trainer:fit(net, tiny.same(6))
    assert.equal(2, trainer.global_step)
    assert.equal(reference(4, nil, { accumulate_grad_batches = 2 }), net.w:item())
    assert.equal(4.0, trainer.scaler:get_scale())
  end)

  it("continues where its file was written", function()
    local path, bad = tiny.folder() .. ".ckpt", { [1] = true, [4] = true }
    local whole = line(bad)
    local trainer = trainer_of(8)
    trainer:fit(whole, tiny.same(6))
    local first = line(bad)
    function first:on_train_batch_end(_, _, index)
      if index == 2 then self.trainer:save_checkpoint(path) end
    end
    trainer_of(8):fit(first, tiny.same(6))
    local saved = lt.CheckpointIO():load(path)
    assert.same({ scale = 4.0, growth_factor = 2.0, backoff_factor = 0.5, growth_interval = 1000,
      _growth_tracker = 1 }, saved.MixedPrecision)
    assert.equal(2, saved.global_step)
    local second, resumed = line(bad), trainer_of(8)
    resumed:fit(second, tiny.same(6), nil, { ckpt_path = path })
    assert.equal(whole.w:item(), second.w:item())
    assert.equal(4, resumed.global_step)
    assert.same(trainer.scaler:state_dict(), resumed.scaler:state_dict())
    os.remove(path)
  end)

  it("is right in a file that is written after the batch that was left out", function()
    local path, net = tiny.folder() .. ".ckpt", line { [1] = true }
    function net:on_train_batch_end(_, _, index)
      if index == 1 then self.trainer:save_checkpoint(path) end
    end
    trainer_of(8):fit(net, tiny.same(3))
    local saved = lt.CheckpointIO():load(path)
    assert.equal(1, saved.global_step)
    assert.equal(1, saved.optimizer_states[1].state.w.step)
    os.remove(path)
  end)

  it("continues in the middle of a window in another precision", function()
    local path, window = tiny.folder() .. ".ckpt", { accumulate_grad_batches = 2 }
    local function saving()
      local net = line {}
      function net:on_train_batch_end(_, _, index)
        if index == 2 then self.trainer:save_checkpoint(path) end
      end
      return net
    end
    local function resume(trainer)
      local net = line {}
      trainer:fit(net, tiny.same(4), nil, { ckpt_path = path })
      os.remove(path)
      return net.w:item()
    end
    trainer_of(1024, window):fit(saving(), tiny.same(4))
    assert.near(reference(4, nil, window), resume(tiny.trainer(window)), 1e-5)
    tiny.trainer(window):fit(saving(), tiny.same(4))
    assert.near(reference(4, nil, window), resume(trainer_of(1024, window)), 1e-5)
  end)

  it("refuses a closure that is called again", function()
    local net = line {}
    function net:optimizer_step(_, _, optimizer, closure)
      closure()
      optimizer:step(closure)
    end
    assert.matches("optimizer_step: the closure was called again: that is not supported with "
      .. "precision = '16%-mixed'", tiny.error_of(function()
      trainer_of(8):fit(net, tiny.same(1))
    end))
  end)
end)

describe("precision = '16-mixed' on an asynchronous device", function()
  local function on_fake() return lt.strategies.SingleDevice { device = "fake:0" } end

  it("computes products in f16, with a scale of 65536", function()
    local net, seen = lt.nn.Linear(2, 1, { bias = false }), {}
    function net:training_step(x)
      local y = self(x)
      seen[1], seen[2] = y.dtype, self.dtype
      return y:square():mean()
    end
    function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.01 }) end
    local trainer = tiny.trainer { precision = 16, strategy = on_fake() }
    trainer:fit(net, { lt.full({ 4, 2 }, 0.125) })
    assert.same({ "f16", "f32" }, seen)
    assert.equal("16-mixed", trainer.precision)
    assert.equal(65536.0, trainer.scaler:get_scale())
    assert.equal(1, trainer.global_step)
  end)

  it("waits for nothing in a step", function()
    local net, waits = line {}, {}
    function net:on_train_batch_end(_, _, index)
      waits[index] = require("ltrain.c").runtime.fake_counts().waits
    end
    local trainer = tiny.trainer { precision = "16-mixed", strategy = on_fake(),
      gradient_clip_val = 1.0 }
    trainer:fit(net, tiny.same(6))
    assert.equal(waits[0], waits[3]) -- later it is far ahead: the fake device is in no hurry
  end)
end)

describe("manual optimization with a scaler", function()
  -- Two weights, each with an optimizer; the losses of the batches in `bad` overflow for `v`.
  local function pair(bad)
    local net = tiny.Line()
    net.v = lt.parameter(lt.tensor { 0.5 })
    net.automatic_optimization = false
    function net:training_step(x, batch_idx)
      local first, second = table.unpack(self:optimizers())
      first:zero_grad()
      second:zero_grad()
      self:manual_backward(self:loss(x))
      local difference = self.v - 2
      local loss = (difference * difference):mean()
      self:manual_backward(bad[batch_idx] and loss * INF or loss)
      self:clip_gradients(first, 0.5)
      first:step()
      second:step()
    end
    function net:configure_optimizers()
      return { lt.optim.SGD({ self.w }, { lr = 0.5 }), lt.optim.SGD({ self.v }, { lr = 0.5 }) }
    end
    return net
  end

  it("steps several optimizers with one scale, each by itself left out", function()
    local net, trainer = pair { [1] = true }, trainer_of(64)
    trainer:fit(net, tiny.same(3))
    local expected = pair {}
    tiny.trainer():fit(expected, tiny.same(3))
    assert.near(expected.w:item(), net.w:item(), 1e-6)
    assert.equal(5, trainer.global_step)
    assert.equal(32.0, trainer.scaler:get_scale())
    assert.near(2, net.v:item(), 1e-6) -- (v - 2)^2 by a step of 0.5 is at its minimum
  end)

  it("may step twice in a batch", function()
    local net, trainer = line {}, trainer_of(8)
    net.automatic_optimization = false
    function net:training_step(x)
      local optimizer = self:optimizers()
      for _ = 1, 2 do
        optimizer:zero_grad()
        self:manual_backward(self:loss(x))
        optimizer:step()
      end
    end
    trainer:fit(net, tiny.same(2))
    assert.equal(4, trainer.global_step)
    assert.equal(reference(4), net.w:item())
  end)
end)
