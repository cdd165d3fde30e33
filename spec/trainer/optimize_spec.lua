-- spec/trainer/optimize_spec.lua: accumulation, weights, clipping, manual optimization.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

-- The gradient of mean((x w - 2 x)^2) at w = 0.5.
local function gradient(values)
  local sum = 0
  for _, x in ipairs(values) do sum = sum + 2 * (0.5 - 2) * x * x end
  return sum / #values
end

local function weight_after(batches, options)
  local net = tiny.Line()
  local trainer = tiny.trainer(options)
  trainer:fit(net, batches)
  return net.w:item(), trainer
end

describe("accumulate_grad_batches", function()
  it("steps once a window, with the mean over its samples", function()
    local w, trainer = weight_after(tiny.batches({ 1, 2 }, { 3, 1 }),
      { accumulate_grad_batches = 2 })
    assert.equal(1, trainer.global_step)
    assert.near(0.5 - 0.1 * gradient { 1, 2, 3, 1 }, w, 1e-6)
  end)

  it("weighs a short last batch by its size", function()
    local w = weight_after(tiny.batches({ 1, 2 }, { 3 }), { accumulate_grad_batches = 2 })
    assert.near(0.5 - 0.1 * gradient { 1, 2, 3 }, w, 1e-6)
  end)

  it("weighs a short last window by what is in it", function()
    local net, deltas = tiny.Line(), {}
    function net:on_before_optimizer_step() deltas[#deltas + 1] = self.w.grad:item() end
    function net:on_train_batch_end() self:load_state_dict { w = lt.tensor { 0.5 } } end
    tiny.trainer({ accumulate_grad_batches = 2 }):fit(net,
      tiny.batches({ 1, 2 }, { 3, 1 }, { 2, 2 }))
    assert.equal(2, #deltas)
    assert.near(gradient { 1, 2, 3, 1 }, deltas[1], 1e-5)
    assert.near(gradient { 2, 2 }, deltas[2], 1e-5)
  end)

  it("refuses weights that are none", function()
    for _, weight in ipairs { -1, 1 / 0, 0 / 0, "x", lt.ones(2) } do
      local net = tiny.Line()
      function net:training_step(x) return { loss = self:loss(x), weight = weight } end
      local ok, message = pcall(tiny.trainer().fit, tiny.trainer(), net, tiny.batches { 1, 2 })
      assert.is_false(ok)
      assert.matches("training_step: weight must be a number, at least 0 and finite: got ", message)
      assert.equal(0.5, net.w:item())
    end
  end)

  it("takes the weight that the step gives", function()
    local net = tiny.Line()
    function net:training_step(x, batch_idx)
      return { loss = self:loss(x), weight = batch_idx == 0 and 3 or 1 }
    end
    tiny.trainer({ accumulate_grad_batches = 2 }):fit(net, tiny.batches({ 1 }, { 2 }))
    assert.near(0.5 - 0.1 * (3 * gradient { 1 } + gradient { 2 }) / 4, net.w:item(), 1e-6)
  end)
end)

describe("a step that returns nil", function()
  it("is left out of its window", function()
    local net = tiny.Line()
    function net:training_step(x, batch_idx)
      if batch_idx == 1 then return nil end
      return self:loss(x)
    end
    tiny.trainer({ accumulate_grad_batches = 2 }):fit(net, tiny.batches({ 1, 2 }, { 9, 9 }))
    assert.near(0.5 - 0.1 * gradient { 1, 2 }, net.w:item(), 1e-6)
  end)

  it("skips the step, and the scheduler, when it is alone", function()
    local net = tiny.Line()
    function net:training_step(x, batch_idx)
      if batch_idx > 0 then return nil end
      return self:loss(x)
    end
    local scheduler
    function net:configure_optimizers()
      local optimizer = lt.optim.SGD(self:parameters(), { lr = 0.1 })
      scheduler = lt.optim.StepLR(optimizer, 1, { gamma = 0.5 })
      return { optimizer = optimizer, lr_scheduler = { scheduler = scheduler, interval = "step" } }
    end
    local trainer = tiny.trainer()
    trainer:fit(net, tiny.same(3))
    assert.equal(1, trainer.global_step)
    assert.equal(1, scheduler.last_epoch)
  end)
end)

describe("gradient clipping", function()
  it("by norm and by value limits what the optimizer sees", function()
    for _, algorithm in ipairs { "norm", "value" } do
      local w = weight_after(tiny.same(1), { gradient_clip_val = 0.5,
        gradient_clip_algorithm = algorithm })
      assert.near(0.5 + 0.1 * 0.5, w, 1e-5)
    end
  end)

  it("can be replaced by the module", function()
    local net = tiny.Line()
    function net.configure_gradient_clipping(_, optimizer) optimizer:clip_gradients(0.25) end
    tiny.trainer():fit(net, tiny.same(1))
    assert.near(0.5 + 0.1 * 0.25, net.w:item(), 1e-5)
  end)
end)

describe("optimizer_step", function()
  it("can be replaced, and steps only when the optimizer does", function()
    local net = tiny.Line()
    function net:optimizer_step(_, batch_idx, optimizer, closure)
      if batch_idx % 2 == 0 then optimizer:step(closure) else closure() end
    end
    local trainer = tiny.trainer()
    trainer:fit(net, tiny.same(4))
    assert.equal(2, trainer.global_step)
  end)

  it("runs training_step and backward when the closure is called", function()
    local net, seen = tiny.Line(), {}
    local step = net.training_step
    function net:training_step(x)
      seen[#seen + 1] = self.w:item()
      return step(self, x)
    end
    function net:optimizer_step(_, _, optimizer, closure)
      assert.is_nil(self.w.grad)
      lt.allow_update(function() self.w:fill_(1.0) end)
      optimizer:step(closure)
    end
    tiny.trainer():fit(net, tiny.batches { 1, 2 })
    assert.same({ 1.0 }, seen)
    assert.near(1.0 - 0.1 * (2 * (1 - 2) * 2.5), net.w:item(), 1e-6)
  end)

  -- Sharpness-aware minimisation: the gradient at w + r g/|g| is taken at w.
  it("has the number of the step that it makes, so that a warm-up has Lightning's rates", function()
    local net, trainer, rates = tiny.Line(), tiny.trainer(), {}
    function net:optimizer_step(_, _, optimizer, closure)
      rates[#rates + 1] = optimizer.param_groups[1].lr
      optimizer:step(closure)
      optimizer.param_groups[1].lr = 0.1 * math.min(1, (self.trainer.global_step + 1) / 4)
    end
    trainer:fit(net, tiny.same(5))
    assert.same({ 0.1, 0.1 * 0.25, 0.1 * 0.5, 0.1 * 0.75, 0.1 }, rates)
    assert.equal(5, trainer.global_step)
  end)

  it("has made a step when it fails after the optimizer's", function()
    local net, trainer = tiny.Line(), tiny.trainer()
    function net.optimizer_step(_, _, _, optimizer, closure)
      optimizer:step(closure)
      error "late"
    end
    tiny.error_of(trainer.fit, trainer, net, tiny.same(2))
    assert.equal(1, trainer.global_step)
  end)

  it("may call it twice", function()
    local net, hooks = tiny.Line(), {}
    for _, name in ipairs { "on_before_zero_grad", "on_after_backward",
      "on_before_optimizer_step" } do
      net[name] = function() hooks[#hooks + 1] = name end
    end
    function net:optimizer_step(_, _, optimizer, closure)
      closure()
      local from = self.w:detach():clone()
      lt.allow_update(function() self.w:add_(self.w.grad:sign() * 0.05) end)
      local loss = closure()
      assert.near(2.5 * (0.45 - 2) ^ 2, loss:item(), 1e-5)
      lt.allow_update(function() self.w:copy_(from) end)
      optimizer:step()
    end
    local trainer = tiny.trainer()
    trainer:fit(net, tiny.batches { 1, 2 })
    assert.near(0.5 - 0.1 * (2 * (0.45 - 2) * 2.5), net.w:item(), 1e-6)
    assert.equal(1, trainer.global_step)
    assert.same({ "on_before_zero_grad", "on_after_backward", "on_before_zero_grad",
      "on_after_backward", "on_before_optimizer_step" }, hooks)
  end)

  it("is called by an optimizer with a step of its own as often as it likes", function()
    local Search = lt.optim.SGD:extend("Search")
    function Search:step(closure) -- Newton's method by two gradients
      local parameter = self.param_groups[1].params[1]
      closure()
      local first = parameter.grad:item()
      lt.allow_update(function() parameter:add_(0.25) end)
      local loss = closure()
      local second = parameter.grad:item()
      lt.allow_update(function() parameter:sub_(second / ((second - first) / 0.25)) end)
      return loss
    end
    local net = tiny.Line()
    function net:configure_optimizers() return Search(self:parameters()) end
    local trainer = tiny.trainer { max_steps = 1, max_epochs = -1 }
    trainer:fit(net, tiny.batches({ 1, 2 }, { 1, 2 }))
    assert.near(2.0, net.w:item(), 1e-5)
    assert.equal(1, trainer.global_step)
  end)

  it("sees the last batch of a window; those before run without it", function()
    local net, order = tiny.Line(), {}
    local step = net.training_step
    function net:training_step(x, batch_idx)
      order[#order + 1] = batch_idx
      return step(self, x)
    end
    function net:optimizer_step(_, batch_idx, optimizer, closure)
      order[#order + 1] = "before " .. batch_idx
      optimizer:step(closure)
    end
    tiny.trainer({ accumulate_grad_batches = 2 }):fit(net, tiny.batches({ 1, 2 }, { 3, 1 }, { 2 }))
    assert.same({ 0, "before 1", 1, "before 2", 2 }, order)
    local w = 0.5 - 0.1 * gradient { 1, 2, 3, 1 }
    assert.near(w - 0.1 * 2 * (w - 2) * 4, net.w:item(), 1e-5)
  end)

  it("must call the closure", function()
    local net = tiny.Line()
    function net.optimizer_step() end
    assert.matches("optimizer_step: the closure was not called: it runs training_step and backward",
      tiny.error_of(function() tiny.trainer():fit(net, tiny.same(1)) end))
  end)

  it("cannot call it later", function()
    local net, kept = tiny.Line(), nil
    function net:optimizer_step(_, _, optimizer, closure)
      kept = closure
      optimizer:step(closure)
    end
    function net.on_train_batch_end() kept() end
    assert.matches("the closure was called after optimizer_step had ended",
      tiny.error_of(function() tiny.trainer():fit(net, tiny.same(1)) end))
  end)
end)

describe("in mid-fit", function()
  local function fit(change, options, count)
    local net = tiny.Line()
    function net:on_train_batch_start(_, batch_idx)
      if batch_idx == 1 then change(self, self.trainer) end
    end
    local trainer = tiny.trainer(options)
    trainer:fit(net, tiny.same(count or 4))
    return net, trainer
  end

  it("another optimizer in trainer.optimizers steps and is counted", function()
    local second
    local _, trainer = fit(function(net, trainer)
      second = lt.optim.SGD(net:parameters(), { lr = 0.0 })
      trainer.optimizers[1] = second
    end, { max_steps = 3 }, 10)
    assert.equal(3, trainer.global_step)
    assert.equal(second, trainer.optimizers[1])
    assert.is_nil(rawget(second, "step"))
  end)

  it("another list of optimizers is taken", function()
    local at
    local net, trainer = fit(function(net, trainer)
      at = net.w:item()
      trainer.optimizers = { lt.optim.SGD(net:parameters(), { lr = 0.0 }) }
    end)
    assert.equal(at, net.w:item())
    assert.equal(4, trainer.global_step)
  end)

  it("what is not an optimizer is refused, and two in automatic optimization", function()
    assert.matches("trainer.optimizers: an optimizer is needed: got 3",
      tiny.error_of(fit, function(_, trainer) trainer.optimizers[1] = 3 end))
    assert.matches("trainer.optimizers: 2 optimizers need manual optimization",
      tiny.error_of(fit, function(net, trainer)
        trainer.optimizers[2] = lt.optim.SGD(net:parameters(), {})
      end))
  end)

  it("a scheduler of an optimizer that has gone is refused", function()
    local net = tiny.Line()
    function net:configure_optimizers()
      local optimizer = lt.optim.SGD(self:parameters(), { lr = 0.1 })
      return { optimizer = optimizer, lr_scheduler = lt.optim.StepLR(optimizer, 1) }
    end
    function net:on_train_batch_start()
      self.trainer.optimizers[1] = lt.optim.SGD(self:parameters(), {})
    end
    assert.matches("the optimizer of .*StepLR.* is not among them: set "
      .. "trainer.lr_scheduler_configs too",
      tiny.error_of(function() tiny.trainer():fit(net, tiny.same(2)) end))
  end)

  it("another scheduler in trainer.lr_scheduler_configs is stepped", function()
    local scheduler
    fit(function(_, trainer)
      scheduler = lt.optim.StepLR(trainer.optimizers[1], 1)
      trainer.lr_scheduler_configs = { { scheduler = scheduler, interval = "step" } }
    end)
    assert.equal(3, scheduler.last_epoch)
  end)

  it("automatic_optimization may change between windows, not within one", function()
    local change = function(net)
      net.automatic_optimization = false
      function net:training_step(x)
        local optimizer = self:optimizers()
        optimizer:zero_grad()
        self:manual_backward(self:loss(x))
        optimizer:step()
        optimizer:step()
      end
    end
    local _, trainer = fit(change)
    assert.equal(1 + 3 * 2, trainer.global_step)
    assert.matches("automatic_optimization was changed in the middle of a window",
      tiny.error_of(fit, change, { accumulate_grad_batches = 2 }))
    assert.matches("gradient_clip_val has no meaning in manual optimization",
      tiny.error_of(fit, change, { gradient_clip_val = 1.0 }))
  end)
end)

describe("manual optimization", function()
  local function manual()
    local net = tiny.Line()
    net.automatic_optimization = false
    return net
  end

  it("lets the module do it all, and counts the steps", function()
    local net, hooks = manual(), {}
    function net:training_step(x)
      local optimizer = self:optimizers()
      optimizer:zero_grad()
      self:manual_backward(self:loss(x))
      optimizer:step()
    end
    for _, name in ipairs { "on_before_backward", "on_after_backward",
      "on_before_optimizer_step" } do
      net[name] = function() hooks[#hooks + 1] = name end
    end
    local trainer = tiny.trainer()
    trainer:fit(net, tiny.batches({ 1, 2 }))
    assert.near(0.5 - 0.1 * gradient { 1, 2 }, net.w:item(), 1e-6)
    assert.equal(1, trainer.global_step)
    assert.same({ "on_before_backward", "on_after_backward", "on_before_optimizer_step" }, hooks)
  end)

  it("takes several optimizers", function()
    local net = manual()
    net.v = lt.parameter(lt.tensor { 1.0 })
    function net:configure_optimizers()
      return { lt.optim.SGD({ self.w }, { lr = 0.1 }), lt.optim.SGD({ self.v }, { lr = 0.2 }) }
    end
    function net:training_step(x)
      local first, second = table.unpack(self:optimizers())
      self:toggle_optimizer(first)
      self:manual_backward(self:loss(x) + (self.v * self.v):sum())
      assert(self.v.grad == nil and self.w.grad ~= nil)
      self:untoggle_optimizer()
      first:step()
      second:step()
    end
    local trainer = tiny.trainer()
    trainer:fit(net, tiny.same(2))
    assert.equal(4, trainer.global_step)
  end)

  it("refuses what is the Trainer's in automatic optimization", function()
    assert.matches("accumulate_grad_batches has no meaning in manual optimization",
      tiny.error_of(function()
        tiny.trainer({ accumulate_grad_batches = 2 }):fit(manual(), tiny.same(1))
      end))
    assert.matches("gradient_clip_val has no meaning", tiny.error_of(function()
      tiny.trainer({ gradient_clip_val = 1.0 }):fit(manual(), tiny.same(1))
    end))
    assert.matches("manual_backward: set self.automatic_optimization = false",
      tiny.error_of(function()
        local net = tiny.Line()
        function net:training_step(x) self:manual_backward(self:loss(x)) end
        tiny.trainer():fit(net, tiny.same(1))
      end))
  end)
end)
