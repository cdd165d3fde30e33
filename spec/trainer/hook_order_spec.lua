-- spec/trainer/hook_order_spec.lua: what is called when, on callbacks, module and data module.
local hooks = require "ltrain.core.hooks"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

-- Makes every hook of the list record "who.name" and do what it did before.
local function record(object, kind, log)
  for _, name in ipairs(hooks.names(kind)) do
    local before = object[name]
    if before or name:find "^on_" or name == "setup" or name == "teardown"
      or name == "prepare_data" or name == "configure_model" then
      object[name] = function(...)
        log[#log + 1] = kind:sub(1, 1) .. "." .. name
        if before then return before(...) end
      end
    end
  end
end

local function module_with(log)
  local net = tiny.Line()
  function net:validation_step(x) self:log("val_loss", self:loss(x)) end
  record(net, "module", log)
  -- These have other ways of working when they are defined.
  net.on_before_batch_transfer, net.on_after_batch_transfer = nil, nil
  net.on_validation_model_eval, net.on_validation_model_train = nil, nil
  net.on_test_model_eval, net.on_test_model_train, net.on_predict_model_eval = nil, nil, nil
  return net
end

local FIT <const> = [[
  m.prepare_data c.setup m.setup m.configure_model m.configure_optimizers
  c.on_fit_start m.on_fit_start
  c.on_sanity_check_start
  c.on_validation_start m.on_validation_start
  c.on_validation_epoch_start m.on_validation_epoch_start
  c.on_validation_batch_start m.on_validation_batch_start m.validation_step
  c.on_validation_batch_end m.on_validation_batch_end
  c.on_validation_epoch_end m.on_validation_epoch_end
  c.on_validation_end m.on_validation_end
  c.on_sanity_check_end
  c.on_train_start m.on_train_start
  c.on_train_epoch_start m.on_train_epoch_start
  c.on_train_batch_start m.on_train_batch_start
  m.optimizer_step m.training_step
  c.on_before_zero_grad m.on_before_zero_grad m.optimizer_zero_grad
  c.on_before_backward m.on_before_backward m.backward
  c.on_after_backward m.on_after_backward
  c.on_before_optimizer_step m.on_before_optimizer_step
  m.configure_gradient_clipping m.clip_gradients
  c.on_after_optimizer_step m.on_after_optimizer_step
  c.on_train_batch_end m.on_train_batch_end
  m.on_validation_model_zero_grad
  c.on_validation_start m.on_validation_start
  c.on_validation_epoch_start m.on_validation_epoch_start
  c.on_validation_batch_start m.on_validation_batch_start m.validation_step
  c.on_validation_batch_end m.on_validation_batch_end
  c.on_validation_epoch_end m.on_validation_epoch_end
  c.on_validation_end m.on_validation_end
  c.on_train_epoch_end m.on_train_epoch_end
  c.on_train_end m.on_train_end
  c.on_fit_end m.on_fit_end
  c.teardown m.teardown]]

local TEST <const> = [[
  m.prepare_data c.setup m.setup m.configure_model
  c.on_test_start m.on_test_start c.on_test_epoch_start m.on_test_epoch_start
  c.on_test_batch_start m.on_test_batch_start m.test_step
  c.on_test_batch_end m.on_test_batch_end
  c.on_test_epoch_end m.on_test_epoch_end c.on_test_end m.on_test_end
  c.teardown m.teardown]]

local PREDICT <const> = [[
  m.prepare_data c.setup m.setup m.configure_model
  c.on_predict_start m.on_predict_start c.on_predict_epoch_start m.on_predict_epoch_start
  c.on_predict_batch_start m.on_predict_batch_start m.predict_step
  c.on_predict_batch_end m.on_predict_batch_end
  c.on_predict_epoch_end m.on_predict_epoch_end c.on_predict_end m.on_predict_end
  c.teardown m.teardown]]

local function words(text)
  local list = {}
  for word in text:gmatch "%S+" do list[#list + 1] = word end
  return list
end

local function setup_recording()
  local log, callback = {}, lt.Callback()
  record(callback, "callback", log)
  callback.on_save_checkpoint, callback.on_load_checkpoint, callback.on_exception = nil, nil, nil
  return log, callback
end

describe("the hooks of fit", function()
  it("come in the order of the list, each callback before the module", function()
    local log, callback = setup_recording()
    local net = module_with(log)
    local trainer = tiny.trainer { callbacks = { callback }, gradient_clip_val = 10.0 }
    trainer:fit(net, tiny.same(1), tiny.same(1))
    assert.same(words(FIT), log)
  end)

  it("of a callback that monitors a metric end the epoch after the module", function()
    local log, first, last = {}, lt.Callback(), lt.Callback()
    last.monitor = "train_loss"
    function first:on_train_epoch_end() log[#log + 1] = "first" end
    function last:on_train_epoch_end(trainer)
      log[#log + 1] = "last"
      assert.near(3.0, trainer.callback_metrics.late, 1e-12)
    end
    local net = tiny.Line()
    function net:on_train_epoch_end()
      log[#log + 1] = "module"
      self:log("late", 3.0)
    end
    tiny.trainer({ callbacks = { last, first } }):fit(net, tiny.same(1))
    assert.same({ "first", "module", "last" }, log)
  end)

  it("may be added while it runs", function()
    local calls, net = 0, tiny.Line()
    function net:on_train_batch_start(_, batch_idx)
      if batch_idx == 0 then
        function net.on_train_batch_end() calls = calls + 1 end
      end
    end
    tiny.trainer():fit(net, tiny.same(3))
    assert.equal(2, calls)
  end)

  it("leave out the rest of the epoch when on_train_batch_start returns -1", function()
    local seen, net = {}, tiny.Line()
    function net:on_train_batch_start(_, batch_idx)
      if batch_idx == 1 then return -1 end
      seen[#seen + 1] = self.current_epoch
    end
    local trainer = tiny.trainer { max_epochs = 2 }
    trainer:fit(net, tiny.same(4))
    assert.same({ 0, 1 }, seen)
    assert.equal(2, trainer.global_step)
    assert.equal(2, trainer.current_epoch)
  end)
end)

describe("the hooks of test and predict", function()
  it("of test come in the order of the list", function()
    local log, callback = setup_recording()
    local net = module_with(log)
    function net:test_step()
      log[#log + 1] = "m.test_step"
    end
    tiny.trainer({ callbacks = { callback } }):test(net, tiny.same(1), { verbose = false })
    assert.same(words(TEST), log)
  end)

  it("of predict come in the order of the list", function()
    local log, callback = setup_recording()
    tiny.trainer({ callbacks = { callback } }):predict(module_with(log), tiny.same(1))
    assert.same(words(PREDICT), log)
  end)
end)

describe("a misspelt hook", function()
  it("of the module is an error that names the nearest", function()
    local net = tiny.Line()
    function net.on_train_epoch_ends() end
    local message = tiny.error_of(function() tiny.trainer():fit(net, tiny.same(1)) end)
    assert.matches("'on_train_epoch_ends'; did you mean 'on_train_epoch_end'%?", message)
  end)

  it("of a class below is found too, and of a step", function()
    local Wrong = tiny.Line:extend("Wrong")
    function Wrong:validaton_step() end
    local message = tiny.error_of(function() tiny.trainer():fit(Wrong(), tiny.same(1)) end)
    assert.matches("'validaton_step'; did you mean 'validation_step'%?", message)
  end)

  it("of a callback is an error", function()
    local callback = lt.Callback()
    function callback.on_train_strat() end
    local message = tiny.error_of(function()
      tiny.trainer({ callbacks = { callback } }):fit(tiny.Line(), tiny.same(1))
    end)
    assert.matches("did you mean 'on_train_start'", message)
  end)

  it("does not include the user's own methods", function()
    local net = tiny.Line()
    function net.on_my_own_event() end
    function net.generator_step() end
    tiny.trainer():fit(net, tiny.same(1))
  end)
end)
