-- spec/callbacks/learning_rate_finder_spec.lua: the range test: rates, suggestion, what stays.
local child = require "spec.cli.child"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local LearningRateFinder <const> = lt.callbacks.LearningRateFinder

local function fit(options, net, batches, more)
  local finder = LearningRateFinder(options)
  local o = { callbacks = { finder }, max_steps = 1, max_epochs = -1 }
  for name, value in pairs(more or {}) do o[name] = value end
  tiny.trainer(o):fit(net, batches or tiny.same(8))
  return finder
end

describe("LearningRateFinder", function()
  it("tries rates between two, exponentially or evenly", function()
    local o <const> = { min_lr = 1e-4, max_lr = 1e-2, num_training_steps = 5,
      early_stop_threshold = false }
    local rates = fit(o, tiny.Line()).results.lr
    assert.equal(5, #rates)
    for k, rate in ipairs { 1e-4, 1e-4 * 10 ^ 0.8, 1e-4 * 10 ^ 1.2, 1e-4 * 10 ^ 1.6, 1e-2 } do
      assert.near(rate, rates[k], 1e-12)
    end
    o.mode = "linear"
    rates = fit(o, tiny.Line()).results.lr
    assert.near(1e-4 + 9.9e-3 * 0.6, rates[3], 1e-12)
  end)

  it("suggests the rate at which the loss falls fastest", function()
    local finder = LearningRateFinder()
    finder.results = { lr = { 1, 2, 4, 5, 6 }, loss = { 10, 9, 1, 0.5, 3 } }
    -- Slopes of the parabolas through neighbours: -1, -2, -5/3, -1/2.
    assert.equal(2, finder:suggestion(0, 1))
    finder.results.loss[2] = 0.0 / 0.0 -- -9/3, -9/3 * 1/4 - 1/2 * 3/4, -1/2
    assert.equal(1, finder:suggestion(0, 1))
    assert.is_nil(finder:suggestion())
  end)

  it("makes its steps whatever the command line says of the run", function()
    local folder = child.folder()
    child.write(folder .. "/model.lua", [[
      local lt = require "ltrain"
      local net = lt.nn.Linear(1, 1)
      net.lr = 0.1
      function net:training_step(x) return self(x):square():mean() end
      function net.validation_step() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = self.lr}) end
      local finder = lt.callbacks.LearningRateFinder{num_training_steps = 20}
      function net:on_train_end() print(#finder.results.lr, self.trainer.global_step) end
      local batches = {lt.ones(4, 1), lt.ones(4, 1)}
      return {model = net, data = {train = batches, val = batches},
        trainer = {callbacks = {finder}, max_epochs = -1, logger = false}}
    ]])
    local status, out, err = child.run({ "run", "model.lua", "--max_steps", "3",
      "--limit_val_batches", "1" }, { dir = folder })
    child.remove(folder)
    assert.equal(0, status, err)
    assert.equal("20\t20\n20\t3\n", out) -- of the copy, and of the run
    assert.not_matches("validation data", err, 1, true)
    assert.equal(1, select(2, err:gsub("max_steps = 3", "")))
  end)

  it("sets the module's field, and leaves weights and draws", function()
    local net, batches = tiny.Line(), tiny.same(8)
    lt.seed(5)
    local wanted = lt.rand(1):item()
    lt.seed(5)
    local weight
    function net:on_fit_start() weight = self.w:item() end
    local finder = fit({ min_lr = 1e-4, max_lr = 1, num_training_steps = 40 }, net, batches)
    assert.equal(0.5, weight)
    assert.equal(finder.lr, net.lr)
    assert.equal(finder:suggestion(), net.lr)
    assert.is_true(net.lr > 1e-4 and net.lr < 1)
    assert.near(0.5 + finder.lr * 2 * 1.5 * 2.5, net.w:item(), 1e-6) -- one step with it
    lt.seed(5)
    assert.equal(wanted, lt.rand(1):item())
  end)

  it("ends where the loss grows too large", function()
    local finder = fit({ min_lr = 1, max_lr = 100, num_training_steps = 50 }, tiny.Line())
    assert.is_true(#finder.results.lr < 20)
  end)

  it("ends in manual optimization that never steps", function()
    local net, count = tiny.Line(), 0
    net.automatic_optimization = false
    function net:training_step(x)
      count = count + 1
      self:manual_backward(self:loss(x))
    end
    fit({ num_training_steps = 7, update_attr = false }, net, nil, { max_epochs = 1 })
    assert.equal(7 + 8, count)
  end)

  it("finds the field in hparams, or by its name, or sets none", function()
    local o <const> = { num_training_steps = 20 }
    local net = tiny.Line()
    net.lr, net.hparams = nil, { learning_rate = 0.1 }
    function net:configure_optimizers()
      return lt.optim.SGD(self:parameters(), { lr = self.hparams.learning_rate })
    end
    assert.equal(fit(o, net).lr, net.hparams.learning_rate)
    net = tiny.Line()
    net.rate = 1.0
    assert.equal(fit({ num_training_steps = 20, attr_name = "rate" }, net).lr, net.rate)
    net = tiny.Line()
    fit({ num_training_steps = 20, update_attr = false }, net)
    assert.equal(0.1, net.lr)
  end)

  it("reports what does not fit", function()
    local net = tiny.Line()
    assert.matches("have no field 'rate': name it by attr_name",
      tiny.error_of(fit, { attr_name = "rate" }, net))
    assert.matches("min_lr must be below max_lr: got 1 and 0.1",
      tiny.error_of(LearningRateFinder, { min_lr = 1, max_lr = 0.1 }))
  end)
end)
