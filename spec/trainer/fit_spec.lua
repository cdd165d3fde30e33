-- spec/trainer/fit_spec.lua: how long fit runs, on what, and what ends it.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

-- A Line that records the batches it sees: "epoch:batch", v for validation.
local function recorder()
  local net, seen = tiny.Line(), {}
  function net:training_step(x, batch_idx)
    seen[#seen + 1] = ("%d:%d"):format(self.current_epoch, batch_idx)
    return self:loss(x)
  end
  return net, seen
end

local function with_validation(net, seen)
  function net:validation_step(x, batch_idx)
    seen[#seen + 1] = "v" .. batch_idx
    self:log("val_loss", self:loss(x))
  end
  return net, seen
end

local function error_of_fit(net, data, options)
  return tiny.error_of(function() tiny.trainer(options):fit(net, data or tiny.same(2)) end)
end

describe("Trainer:fit", function()
  it("trains", function()
    local net = tiny.Line()
    tiny.trainer({ max_epochs = 10 }):fit(net, tiny.same(4))
    assert.near(2.0, net.w:item(), 1e-4)
  end)

  it("steps as the formula says", function()
    local net = tiny.Line()
    tiny.trainer():fit(net, tiny.batches({ 1.0, 3.0 }))
    -- d/dw mean((x w - 2 x)^2) = 2 (w - 2) mean(x^2) at w = 0.5
    assert.near(0.5 - 0.1 * 2 * (0.5 - 2) * 5, net.w:item(), 1e-6)
  end)

  it("counts epochs and steps", function()
    local net, seen = recorder()
    local trainer = tiny.trainer { max_epochs = 2 }
    trainer:fit(net, tiny.same(2))
    assert.same({ "0:0", "0:1", "1:0", "1:1" }, seen)
    assert.equal(2, trainer.current_epoch)
    assert.equal(4, trainer.global_step)
    assert.equal("finished", trainer.state.status)
  end)

  it("ends at max_steps and continues inside the epoch when asked again", function()
    local net, seen = recorder()
    local trainer = tiny.trainer { max_epochs = -1, max_steps = 3 }
    trainer:fit(net, tiny.same(2))
    assert.same({ "0:0", "0:1", "1:0" }, seen)
    trainer.max_steps = 4
    trainer:fit(net, tiny.same(2))
    assert.same({ "0:0", "0:1", "1:0", "1:1" }, seen)
  end)

  it("limits batches by count and by share", function()
    local net, seen = recorder()
    tiny.trainer({ limit_train_batches = 1 }):fit(net, tiny.same(4))
    assert.equal(1, #seen)
    net, seen = recorder()
    tiny.trainer({ limit_train_batches = 0.5 }):fit(net, tiny.same(4))
    assert.equal(2, #seen)
    assert.matches("0.1 of 4 batches is 0 batches", error_of_fit(tiny.Line(), tiny.same(4),
      { limit_train_batches = 0.1 }))
  end)

  it("fast_dev_run runs one batch of each loop and saves nothing", function()
    local net, seen = with_validation(recorder())
    local trainer = lt.Trainer { fast_dev_run = true, enable_progress_bar = false,
      enable_model_summary = false }
    trainer:fit(net, tiny.same(4), tiny.same(4))
    assert.same({ "0:0", "v0" }, seen)
    assert.equal(0, #trainer.loggers)
  end)

  it("overfit_batches uses the same few for training and validation", function()
    local net, seen = with_validation(recorder())
    tiny.trainer({ overfit_batches = 1, num_sanity_val_steps = 0, max_epochs = 2 }):fit(net,
      tiny.same(4), tiny.same(4))
    assert.same({ "0:0", "v0", "1:0", "v0" }, seen)
  end)

  it("validates as often as val_check_interval says", function()
    local net, seen = with_validation(recorder())
    tiny.trainer({ val_check_interval = 0.5, num_sanity_val_steps = 0 }):fit(net, tiny.same(4),
      tiny.same(1))
    assert.same({ "0:0", "0:1", "v0", "0:2", "0:3", "v0" }, seen)
    net, seen = with_validation(recorder())
    tiny.trainer({ val_check_interval = 3, check_val_every_n_epoch = false, max_epochs = 2,
      num_sanity_val_steps = 0 }):fit(net, tiny.same(2), tiny.same(1))
    assert.same({ "0:0", "0:1", "1:0", "v0", "1:1" }, seen)
  end)

  it("validates every n epochs", function()
    local net, seen = with_validation(recorder())
    tiny.trainer({ check_val_every_n_epoch = 2, max_epochs = 2, num_sanity_val_steps = 0 }):fit(net,
      tiny.same(1), tiny.same(1))
    assert.same({ "0:0", "1:0", "v0" }, seen)
  end)

  it("checks validation before training and keeps nothing of it", function()
    local net, seen = with_validation(recorder())
    local metrics
    function net:on_train_start() metrics = next(self.trainer.callback_metrics) end
    tiny.trainer({ num_sanity_val_steps = 1, limit_val_batches = 2 }):fit(net, tiny.same(1),
      tiny.same(2))
    assert.same({ "v0", "0:0", "v0", "v1" }, seen)
    assert.is_nil(metrics)
  end)

  it("says what it is doing", function()
    local net, doing = tiny.Line(), {}
    function net:validation_step()
      doing[#doing + 1] = self.trainer.sanity_checking and "check" or self.trainer.state.stage
    end
    function net:on_train_batch_end() doing[#doing + 1] = self.trainer.training end
    local trainer = tiny.trainer { num_sanity_val_steps = 1 }
    trainer:fit(net, tiny.same(1), tiny.same(1))
    assert.same({ "check", true, "validation" }, doing)
    assert.is_false(trainer.training)
  end)

  it("stops when should_stop is set, after a validation, but not before min_epochs", function()
    local net, seen = with_validation(recorder())
    function net:on_train_batch_end(_, _, batch_idx)
      if batch_idx == 0 then self.trainer.should_stop = true end
    end
    tiny.trainer({ num_sanity_val_steps = 0, max_epochs = 5 }):fit(net, tiny.same(2), tiny.same(1))
    assert.same({ "0:0", "v0" }, seen)
    local later, trainer = tiny.Line(), tiny.trainer { max_epochs = 5, min_epochs = 2 }
    function later:on_train_start() self.trainer.should_stop = true end
    trainer:fit(later, tiny.same(2))
    assert.equal(2, trainer.current_epoch)
  end)

  it("keeps the modes of submodules through validation", function()
    local net = tiny.Line()
    net.frozen, net.live = lt.nn.Dropout(0.5):eval(), lt.nn.Dropout(0.5)
    local during
    function net:validation_step() during = self.live.training end
    tiny.trainer():fit(net, tiny.same(1), tiny.same(1))
    assert.is_false(during)
    assert.is_false(net.frozen.training)
    assert.is_true(net.live.training)
  end)

  it("takes functions and generators of batches", function()
    local net, seen = recorder()
    local function generator()
      return coroutine.wrap(function()
        for _ = 1, 3 do coroutine.yield(lt.tensor { 1.0 }) end
      end)
    end
    local trainer = tiny.trainer { max_epochs = 2 }
    trainer:fit(net, generator)
    assert.same({ "0:0", "0:1", "0:2", "1:0", "1:1", "1:2" }, seen)
    local left = 3
    net, seen = recorder()
    tiny.trainer():fit(net, function()
      left = left - 1
      if left >= 0 then return lt.tensor { 1.0 } end
    end)
    assert.same({ "0:0", "0:1", "0:2" }, seen)
  end)

  it("takes loaders from the module and from a plain data module", function()
    local net, seen = recorder()
    function net.train_dataloader() return tiny.same(1) end
    tiny.trainer():fit(net)
    assert.same({ "0:0" }, seen)
    net, seen = recorder()
    local stages = {}
    tiny.trainer():fit(net, {
      train_dataloader = function() return tiny.same(2) end,
      setup = function(_, stage) stages[#stages + 1] = stage end,
    })
    assert.same({ "0:0", "0:1" }, seen)
    assert.same({ "fit" }, stages)
  end)

  it("can be stepped from outside", function()
    local net, trainer = tiny.Line(), tiny.trainer()
    function net.on_train_start() end
    local step, places = trainer:steps("fit", net, tiny.same(2)), {}
    for place in step do places[#places + 1] = place end
    assert.same({ "on_train_start", "batch", "batch" }, places)
    assert.equal(2, trainer.global_step)
  end)

  it("ends when who steps it leaves early, or when it fails", function()
    local net, trainer = tiny.Line(), tiny.trainer()
    for place in trainer:steps("fit", net, tiny.same(4)) do
      if place == "batch" and trainer.global_step == 1 then break end
    end
    assert.is_nil(trainer.running)
    assert.equal("interrupted", trainer.state.status)
    assert.equal(1, trainer.global_step)
    trainer:fit(net, tiny.same(4))
    assert.equal(4, trainer.global_step)
    function net:training_step() error({ code = 7 }) end
    trainer.max_epochs = 2
    local step = trainer:steps("fit", net, tiny.same(4))
    local ok, err = pcall(function() for _ = 1, 9 do step() end end)
    assert.is_false(ok)
    assert.equal(7, err.code)
    assert.is_nil(trainer.running)
    assert.matches("steps: the loop must be 'fit', 'validate', 'test' or 'predict': got 'fitt'",
      tiny.error_of(trainer.steps, trainer, "fitt", net))
  end)

  it("makes a module of a plain table", function()
    local net = {
      w = lt.parameter(lt.tensor { 0.5 }),
      training_step = function(self, x) return ((x * self.w - 1) ^ 2):mean() end,
      configure_optimizers = function(self)
        return lt.optim.SGD(self:parameters(), { lr = 0.1 })
      end,
    }
    tiny.trainer({ max_epochs = 20 }):fit(net, tiny.same(2, { 1.0 }))
    assert.near(1.0, net.w:item(), 1e-2)
  end)
end)

describe("fit reports what is wrong with", function()
  it("a step that returns nothing", function()
    local net = tiny.Line()
    function net:training_step(x) self:loss(x) end
    assert.matches("training_step: nothing was returned %(epoch 0, batch 0, step 0%)",
      error_of_fit(net))
  end)

  it("a step that returns something else", function()
    local net = tiny.Line()
    function net.training_step() return 3 end
    assert.matches("return the loss %(a tensor%), a table with loss, or nil: got 3",
      error_of_fit(net))
    function net.training_step() return { los = 1 } end
    assert.matches("got a table with loss = nil", error_of_fit(net))
    function net.training_step(self, x) return x * self.w end
    assert.matches("must have one element: got a tensor %[2%]", error_of_fit(net))
    function net.training_step(_, x) return x:mean() end
    assert.matches("depends on no parameter", error_of_fit(net))
  end)

  it("a loss that is not finite, before the weights are touched", function()
    local net = tiny.Line()
    function net:training_step(x, batch_idx)
      return self:loss(x) * (batch_idx == 1 and 0 / 0 or 1)
    end
    local before
    function net:on_train_batch_start() before = self.w:item() end
    assert.matches("the loss is nan %(epoch 0, batch 1, step 1%): mul at [^ ]*fit_spec.lua:%d+ "
      .. "made the first nan: the weights are those before this step", error_of_fit(net))
    assert.equal(before, net.w:item())
  end)

  it("an empty data set", function()
    assert.matches("fit: train_dataloader has no batches", error_of_fit(tiny.Line(), {}))
  end)

  it("missing data, steps and optimizers", function()
    assert.matches("no training data",
      tiny.error_of(function() tiny.trainer():fit(tiny.Line()) end))
    local Bare = lt.Module:extend("Bare")
    assert.matches("fit: .*Bare.* has no training_step", error_of_fit(Bare()))
    function Bare.training_step() end
    assert.matches("has no configure_optimizers", error_of_fit(Bare()))
    assert.matches("validate: .* has no validation_step",
      tiny.error_of(function() tiny.trainer():validate(tiny.Line(), tiny.same(1)) end))
  end)

  it("a loader that gives fewer batches than it said", function()
    local loader = { length = function() return 3 end }
    function loader.batches()
      local left = 2
      return function()
        left = left - 1
        if left >= 0 then return lt.tensor { 1.0 } end
      end
    end
    assert.matches("its length is 3 batches, but it has 2", error_of_fit(tiny.Line(), loader))
  end)

  it("a parameter that was replaced behind the optimizer's back", function()
    local net = tiny.Line()
    function net:on_train_epoch_end() self.w = lt.parameter(lt.tensor { 1.0 }) end
    assert.matches("parameter Line.w was replaced since configure_optimizers",
      error_of_fit(net, nil, { max_epochs = 2 }))
    net = tiny.Line()
    function net:on_train_epoch_end() self.extra = lt.parameter(lt.tensor { 1.0 }) end
    assert.matches("parameter Line.extra is new", error_of_fit(net, nil, { max_epochs = 2 }))
  end)

  it("a parameter that was replaced after the last step", function()
    local net = tiny.Line()
    function net:on_train_batch_end()
      if self.trainer.is_last_batch then self.w = lt.parameter(lt.tensor { 1.0 }) end
    end
    assert.matches("at the end of fit: parameter Line.w was replaced since configure_optimizers",
      error_of_fit(net))
  end)

  it("a loop within a loop", function()
    local net = tiny.Line()
    function net:on_train_start() self.trainer:fit(self, tiny.same(1)) end
    assert.matches("this Trainer is running fit", error_of_fit(net))
  end)
end)

describe("a seed that was drawn", function()
  local console = require "ltrain.core.console"
  local say = console.say
  after_each(function()
    console.say = say
    lt.seed(1)
  end)

  local function reported(...)
    local lines = {}
    console.say = function(text) lines[#lines + 1] = text:match("^seed.*") end
    local trainer = tiny.trainer()
    trainer:fit(tiny.Line(), tiny.same(1), ...)
    return lines, trainer
  end

  it("is reported at the first loop, and is that of the file", function()
    local seed = lt.seed()
    local lines, trainer = reported()
    assert.same({ ("seed %d (chosen at random; set it with --seed, lt.seed or "
      .. "LT_SEED)"):format(seed) },
      lines)
    assert.same({}, (reported()))
    local path = tiny.folder()
    trainer:save_checkpoint(path)
    lt.seed()
    assert.same({}, (reported({ ckpt_path = path })))
    assert.equal(seed, require("ltrain.c").runtime.rng_get().seed)
    os.remove(path)
  end)

  it("is not reported when it was given", function()
    lt.seed(5)
    assert.same({}, (reported()))
  end)
end)

describe("an error in a step", function()
  it("reaches the caller as it was raised, and the Trainer can fit again", function()
    local net, trainer, seen = tiny.Line(), tiny.trainer(), nil
    local callback = lt.Callback()
    function callback:on_exception(_, _, exception) seen = exception end
    trainer.callbacks[1] = callback
    function net.training_step() error({ code = 7 }) end
    local ok, value = pcall(trainer.fit, trainer, net, tiny.same(1))
    assert.is_false(ok)
    assert.equal(7, value.code)
    assert.equal(value, seen)
    assert.equal("interrupted", trainer.state.status)
    net.training_step = nil
    trainer:fit(net, tiny.same(1))
    assert.equal(1, trainer.global_step)
  end)
end)
