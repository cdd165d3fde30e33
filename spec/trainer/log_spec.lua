-- spec/trainer/log_spec.lua: self:log: means, keys, permissions, errors.
local hooks = require "ltrain.core.hooks"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

-- A Line whose training_step also calls log(self, x, batch_idx).
local function logging(log, more)
  local net = tiny.Line { lr = 0.0 }
  function net:training_step(x, batch_idx)
    log(self, x, batch_idx)
    return self:loss(x)
  end
  for name, fn in pairs(more or {}) do net[name] = fn end
  return net
end

local function fit(net, batches, options)
  local trainer = tiny.trainer(options)
  trainer:fit(net, batches or tiny.same(2))
  return trainer
end

local function log_error(log)
  return tiny.error_of(fit, logging(log))
end

describe("self:log", function()
  it("weighs an epoch's mean by the batch size", function()
    local net = logging(function(self, x, i)
      self:log("value", i == 0 and 1.0 or 4.0, { on_epoch = true, on_step = false })
    end)
    local trainer = fit(net, tiny.batches({ 1, 2, 3 }, { 1 }))
    assert.near((3 * 1.0 + 1 * 4.0) / 4, trainer.callback_metrics.value, 1e-12)
  end)

  it("forgets what on_train_epoch_end said of an epoch that was cut, when that resumes", function()
    local net = logging(function() end, { on_train_epoch_end = function(self)
      self:log("step", self.trainer.global_step)
    end })
    local trainer = tiny.trainer { max_epochs = 1, max_steps = 1 }
    trainer:fit(net, tiny.same(3))
    assert.equal(1, trainer.callback_metrics.step)
    trainer.max_steps = -1
    trainer:fit(net, tiny.same(3))
    assert.equal(3, trainer.callback_metrics.step)
  end)

  it("takes the batch size that is given", function()
    local net = logging(function(self, _, i)
      self:log("value", i == 0 and 1.0 or 4.0, { on_epoch = true, batch_size = i == 0 and 1 or 2 })
    end)
    local trainer = fit(net)
    assert.near(9.0 / 3, trainer.callback_metrics.value, 1e-12)
    assert.near(9.0 / 3, trainer.callback_metrics.value_epoch, 1e-12)
    assert.equal(4.0, trainer.callback_metrics.value_step)
  end)

  it("sums in doubles", function()
    local net = logging(function(self, _, i)
      self:log("value", i == 0 and 16777216.0 or 1.0, { on_epoch = true, reduce_fx = "sum" })
    end)
    assert.equal(16777217.0, fit(net).callback_metrics.value)
  end)

  it("takes the least, the largest, tensors and integers", function()
    local net = logging(function(self, _, i)
      self:log("least", lt.tensor(i + 2.5), { on_epoch = true, on_step = false, reduce_fx = "min" })
      self:log("most", lt.tensor { i + 1 }, { on_epoch = true, on_step = false, reduce_fx = "max" })
    end)
    local trainer = fit(net)
    assert.equal(2.5, trainer.callback_metrics.least)
    assert.equal(2, trainer.callback_metrics.most)
  end)

  it("in training_step is of the step, in validation_step of the epoch", function()
    local net = logging(function(self, _, i) self:log("train", i) end, {
      validation_step = function(self, _, i) self:log("val", i) end,
    })
    local trainer = tiny.trainer { num_sanity_val_steps = 0 }
    trainer:fit(net, tiny.same(2), tiny.same(3))
    assert.equal(1, trainer.callback_metrics.train)
    assert.equal(1.0, trainer.callback_metrics.val)
  end)

  it("forgets the values of the epoch before", function()
    local seen = {}
    local net = logging(function(self)
      self:log("value", self.current_epoch, { on_epoch = true })
    end)
    function net:on_train_epoch_start()
      seen[#seen + 1] = self.trainer.callback_metrics.value_epoch or "none"
    end
    fit(net, nil, { max_epochs = 3 })
    assert.same({ "none", 0.0, 1.0 }, seen)
  end)

  it("is in logged_metrics from the moment that it is in callback_metrics", function()
    local seen = {}
    local function note(moment)
      return function(self)
        local logged = self.trainer.logged_metrics
        seen[moment] = { logged.value_epoch or "none", logged.mean or "none" }
      end
    end
    local net = logging(function(self)
      self:log("value", 2.0, { on_epoch = true })
    end, { on_train_epoch_end = note "epoch end", on_validation_end = note "validation end",
      on_train_start = note "train start", on_fit_end = note "fit end" })
    function net:validation_step() self:log("mean", 3.0) end
    local check = lt.Callback()
    function check.on_sanity_check_end(_, trainer) note "check" { trainer = trainer } end
    tiny.trainer({ callbacks = { check }, num_sanity_val_steps = 1 }):fit(net, tiny.same(2),
      tiny.same(1))
    assert.same({ check = { "none", 3.0 }, ["train start"] = { "none", "none" },
      ["validation end"] = { "none", 3.0 }, ["epoch end"] = { 2.0, 3.0 },
      ["fit end"] = { 2.0, 3.0 } }, seen)
  end)

  it("shows in the bar what asks for it", function()
    local net = logging(function(self)
      self:log("shown", 1, { prog_bar = true })
      self:log("hidden", 1)
    end)
    assert.same({ shown = 1 }, fit(net).progress_bar_metrics)
  end)

  it("takes a metric, computes it at the epoch's end and resets it", function()
    local net = tiny.Line { lr = 0.0 }
    net.mean = lt.metrics.Mean()
    function net:training_step(x)
      self.mean:update(x)
      self:log("mean", self.mean, { on_epoch = true, on_step = false })
      return self:loss(x)
    end
    local trainer = fit(net, tiny.batches({ 1, 2, 3 }, { 10 }), { max_epochs = 2 })
    assert.near(4.0, trainer.callback_metrics.mean, 1e-12)
  end)

  it("log_dict logs each", function()
    local net = logging(function(self) self:log_dict({ b = 2, a = 1 }, { prog_bar = true }) end)
    assert.same({ a = 1, b = 2 }, fit(net).progress_bar_metrics)
  end)

  it("is heard in every hook of which hooks.lua says that it may log", function()
    for _, row in ipairs(hooks.rows) do
      if row.log and row.who:find "m" then
        local net = tiny.Line()
        function net.validation_step() return 1 end
        function net.test_step() return 1 end
        local before = net[row.name]
        net[row.name] = function(self, ...)
          self:log("heard", 5)
          if before then return before(self, ...) end
          return select("#", ...) == 1 and ... or nil -- what a step returned resumes
        end
        local trainer = tiny.trainer { gradient_clip_val = 1.0, max_epochs = 2 }
        if row.name:find "test" then
          trainer:test(net, tiny.same(1), { verbose = false })
        else
          trainer:fit(net, tiny.same(2), tiny.same(1))
        end
        assert.equal(5, trainer.callback_metrics.heard, row.name)
      end
    end
  end)

  it("in on_train_start is of the first epoch, also where that is resumed", function()
    local path, sums = tiny.folder() .. ".ckpt", {}
    local function fit_on(ckpt_path)
      local net = tiny.Line()
      function net:on_train_start() self:log("begun", 1, { reduce_fx = "sum" }) end
      function net:on_train_batch_end()
        if self.global_step == 1 then self.trainer:request_checkpoint(path) end
      end
      local callback = lt.Callback()
      callback.monitor = "begun"
      function callback:on_train_epoch_end(trainer)
        sums[#sums + 1] = trainer.callback_metrics.begun
        trainer:forget_metrics()
      end
      tiny.trainer({ max_epochs = 2, callbacks = { callback } }):fit(net, tiny.same(2),
        { ckpt_path = ckpt_path })
    end
    fit_on()
    fit_on(path)
    os.remove(path)
    assert.same({ 1.0, 1.0 }, sums)
  end)

  it("names the loader when there are several", function()
    local net = tiny.Line()
    function net:validation_step(x) self:log("mean", x:mean()) end
    local function loader(value)
      return function()
        return coroutine.wrap(function() coroutine.yield(lt.tensor { value }) end)
      end
    end
    local values = tiny.trainer():validate(net, { loader(1.0), loader(3.0) }, { verbose = false })
    assert.same({ ["mean/dataloader_idx_1"] = 1.0 }, values[1])
    assert.same({ ["mean/dataloader_idx_2"] = 3.0 }, values[2])
  end)
end)

describe("self:log refuses", function()
  it("text, tables and tensors of several elements", function()
    assert.matches("'x' needs a number, a tensor of one element or a metric: got 'text'",
      log_error(function(self) self:log("x", "text") end))
    assert.matches("got a tensor %[2%]", log_error(function(self, x) self:log("x", x) end))
  end)

  it("at the line of the script", function()
    assert.matches("^spec/trainer/log_spec.lua:%d+: log: ", log_error(function(self)
      self:log("x", {})
    end))
  end)

  it("an unknown option, naming the nearest", function()
    assert.matches("unknown option 'prog_baar'; did you mean 'prog_bar'%?",
      log_error(function(self) self:log("x", 1, { prog_baar = true }) end))
  end)

  it("an option that must be true or false, and is neither", function()
    for _, option in ipairs { "on_epoch", "prog_bar", "sync_dist", "rank_zero_only" } do
      assert.matches(("log: %s must be true or false: got 1"):format(option),
        log_error(function(self) self:log("x", 1, { [option] = 1 }) end), 1, true)
    end
  end)

  it("other options for the same name in the same hook", function()
    assert.matches("'x' was logged in training_step with another prog_bar: nil, now true",
      log_error(function(self, _, i) self:log("x", 1, i == 1 and { prog_bar = true } or nil) end))
  end)

  it("neither step nor epoch", function()
    assert.matches("on_step and on_epoch are both false",
      log_error(function(self) self:log("x", 1, { on_step = false, on_epoch = false }) end))
  end)

  it("an unknown reduction", function()
    assert.matches("reduce_fx must be .* got 'median'",
      log_error(function(self) self:log("x", 1, { reduce_fx = "median" }) end))
  end)

  it("hooks in which nothing can be logged", function()
    for _, name in ipairs { "on_fit_start", "on_train_end", "configure_optimizers", "setup" } do
      local net = tiny.Line()
      local before = net[name]
      net[name] = function(self, ...)
        self:log("x", 1)
        return before(self, ...)
      end
      assert.matches("log: ", tiny.error_of(fit, net))
    end
  end)

  it("step values where there is no step", function()
    local net = tiny.Line()
    function net:on_train_epoch_end() self:log("x", 1, { on_step = true }) end
    assert.matches("on_train_epoch_end takes no on_step values", tiny.error_of(fit, net))
  end)

  it("a module without a trainer, and one that is not running", function()
    local net = tiny.Line()
    assert.matches("not attached to a trainer", tiny.error_of(net.log, net, "x", 1))
    fit(net)
    assert.matches("no loop of the Trainer is running", tiny.error_of(net.log, net, "x", 1))
  end)
end)
