-- spec/callbacks/early_stopping_spec.lua: EarlyStopping ends a fit that no longer improves.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

-- Epochs that a fit runs whose module logs values[epoch] as "score".
local function epochs(values, options, trainer_options)
  local net = tiny.Line { lr = 0.0 }
  function net:on_train_epoch_end() self:log("score", values[self.current_epoch + 1]) end
  options.monitor = options.monitor or "score"
  local stopping = lt.callbacks.EarlyStopping(options)
  local o = { callbacks = { stopping }, max_epochs = #values }
  for name, value in pairs(trainer_options or {}) do o[name] = value end
  local trainer = tiny.trainer(o)
  trainer:fit(net, tiny.same(1))
  return trainer.current_epoch, stopping
end

describe("EarlyStopping", function()
  it("counts checks without a better value", function()
    assert.equal(5, epochs({ 3, 2, 1, 2, 1.5, 0 }, { patience = 2 }))
    assert.equal(6, epochs({ 3, 2, 1, 2, 0.5, 0 }, { patience = 2 }))
  end)

  it("takes more as better in mode max", function()
    local count, stopping = epochs({ 1, 2, 2, 2, 2, 2 }, { patience = 3, mode = "max" })
    assert.equal(5, count)
    assert.equal(2, stopping.best_score)
    assert.equal(4, stopping.stopped_epoch)
  end)

  it("wants changes of min_delta", function()
    assert.equal(3, epochs({ 1, 0.95, 0.91, 0.5 }, { patience = 2, min_delta = 0.1 }))
  end)

  it("ends at thresholds and at values that are not finite", function()
    assert.equal(2, epochs({ 3, 0.5, 0.4 }, { stopping_threshold = 1.0 }))
    assert.equal(2, epochs({ 3, 11, 0.4 }, { divergence_threshold = 10.0 }))
    assert.equal(1, epochs({ 0 / 0, 1, 1 }, {}))
    assert.equal(3, epochs({ 0 / 0, 1, 1 }, { check_finite = false, patience = 5 }))
  end)

  it("has why it ended the fit, which checkpoints keep", function()
    local function reason(values, options)
      local _, stopping = epochs(values, options)
      local again = lt.callbacks.EarlyStopping { monitor = "score" }
      again:load_state_dict(stopping:state_dict())
      assert.equal(stopping.stopping_reason, again.stopping_reason)
      return again.stopping_reason, again.stopping_reason_message
    end
    assert.same({ "not_stopped" }, { reason({ 2, 1 }, {}) })
    assert.same({ "patience_exhausted", "score was not better than 1 in the last 1 checks" },
      { reason({ 1, 2, 0 }, { patience = 1 }) })
    assert.same({ "stopping_threshold", "score = 0.5 is better than 1" },
      { reason({ 3, 0.5 }, { stopping_threshold = 1.0 }) })
    assert.same({ "divergence_threshold", "score = 11 is worse than 10" },
      { reason({ 3, 11 }, { divergence_threshold = 10.0 }) })
    assert.same({ "non_finite_metric", "score is inf" }, { reason({ math.huge }, {}) })
  end)

  it("does not end before min_epochs", function()
    assert.equal(4, epochs({ 1, 1, 1, 1, 1, 1 }, { patience = 1 }, { min_epochs = 4 }))
  end)

  it("names the metrics that are there when its own is not", function()
    assert.matches("EarlyStopping: nothing called 'scor' was logged; there is: score; did you mean",
      tiny.error_of(epochs, { 1 }, { monitor = "scor" }))
    assert.equal(2, epochs({ 1, 1 }, { monitor = "absent", strict = false }))
  end)

  it("looks after validation when validation has its own rhythm", function()
    local net, checks = tiny.Line { lr = 0.0 }, 0
    function net:validation_step()
      checks = checks + 1
      self:log("val_loss", 1.0)
    end
    local trainer = tiny.trainer { max_epochs = 9, val_check_interval = 0.5,
      num_sanity_val_steps = 0,
      callbacks = { lt.callbacks.EarlyStopping { monitor = "val_loss", patience = 2 } } }
    trainer:fit(net, tiny.same(4), tiny.same(1))
    assert.equal(3, checks)
  end)

  it("needs the name of a metric", function()
    assert.matches("option 'monitor' is required", tiny.error_of(lt.callbacks.EarlyStopping, {}))
  end)
end)
