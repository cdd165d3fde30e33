-- spec/trainer/optimizers_spec.lua: what configure_optimizers may return, and when schedulers step.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local function sgd(net)
  return lt.optim.SGD(net:parameters(), { lr = 1.0 })
end

local function halving(optimizer)
  return lt.optim.StepLR(optimizer, 1, { gamma = 0.5 })
end

-- Fits with configure_optimizers = make; returns trainer and the first optimizer.
local function fit(make, batches, options)
  local net = tiny.Line()
  function net:training_step(x)
    self:log("loss_value", 1.0)
    return self:loss(x) * 0
  end
  net.configure_optimizers = make
  local trainer = tiny.trainer(options)
  trainer:fit(net, batches or tiny.same(2))
  return trainer
end

local function rate(trainer)
  return trainer.optimizers[1].param_groups[1].lr
end

describe("configure_optimizers may return", function()
  it("nothing, one optimizer, a list of one", function()
    assert.equal(0, fit(function() end).global_step)
    assert.equal(2, fit(sgd).global_step)
    assert.equal(2, fit(function(net) return { sgd(net) } end).global_step)
  end)

  it("optimizers and schedulers, as two results or as a pair of lists", function()
    local function two(net)
      local optimizer = sgd(net)
      return { optimizer }, { halving(optimizer) }
    end
    assert.equal(0.5, rate(fit(two)))
    assert.equal(0.5, rate(fit(function(net) return { two(net) } end)))
    assert.equal(0.5, rate(fit(function(net)
      local optimizer = sgd(net)
      return optimizer, halving(optimizer)
    end)))
  end)

  it("a table with lr_scheduler, or a list of one", function()
    local function one(net)
      local optimizer = sgd(net)
      return { optimizer = optimizer, lr_scheduler = halving(optimizer) }
    end
    assert.equal(0.5, rate(fit(one)))
    assert.equal(0.5, rate(fit(function(net) return { one(net) } end)))
  end)

  it("nothing else", function()
    local function message(value)
      return tiny.error_of(fit, function() return value end)
    end
    assert.matches("return an optimizer, a list of them", message(3))
    assert.matches("return an optimizer, a list of them", message({ 3 }))
    assert.matches("a table needs optimizer: got 3", message({ optimizer = 3 }))
    assert.matches("or two lists: got a table with the key 'optimiser'; did you mean 'optimizer'?",
      message({ optimiser = sgd(tiny.Line()) }))
    assert.matches("with the key 'optimizr'; did you mean 'optimizer'?",
      message({ { optimizr = sgd(tiny.Line()) } }))
  end)

  it("several optimizers only in manual optimization", function()
    assert.matches("2 optimizers need manual optimization", tiny.error_of(fit, function(net)
      return { lt.optim.SGD({ net.w }, { lr = 1 }), lt.optim.SGD({ net.w }, { lr = 1 }) }
    end))
  end)

  it("only schedulers of its own optimizers", function()
    assert.matches("is not among the returned ones", tiny.error_of(fit, function(net)
      return { sgd(net) }, { halving(sgd(net)) }
    end))
  end)

  it("no interval or frequency that means nothing", function()
    local function with(config)
      return tiny.error_of(fit, function(net)
        local optimizer = sgd(net)
        config.scheduler = halving(optimizer)
        return { optimizer = optimizer, lr_scheduler = config }
      end)
    end
    assert.matches("interval must be 'epoch' or 'step': got 'batch'", with { interval = "batch" })
    assert.matches("frequency must be a positive integer: got 0", with { frequency = 0 })
  end)
end)

describe("a scheduler", function()
  local function rate_with(config, batches, options)
    return rate(fit(function(net)
      local optimizer = sgd(net)
      config.scheduler = halving(optimizer)
      return { optimizer = optimizer, lr_scheduler = config }
    end, batches, options))
  end

  it("of interval step steps with the optimizer, every frequency-th time", function()
    assert.equal(0.125, rate_with({ interval = "step" }, tiny.same(3)))
    assert.equal(0.5, rate_with({ interval = "step", frequency = 2 }, tiny.same(3)))
    assert.equal(0.25, rate_with({ interval = "step" }, tiny.same(3),
      { accumulate_grad_batches = 2 }))
  end)

  it("of interval epoch steps at the end of each", function()
    assert.equal(0.25, rate_with({}, nil, { max_epochs = 2 }))
    assert.equal(0.5, rate_with({ frequency = 2 }, nil, { max_epochs = 3 }))
  end)

  local function plateau(monitor, strict)
    return function(net)
      local optimizer = sgd(net)
      return { optimizer = optimizer, lr_scheduler = { monitor = monitor, strict = strict,
        scheduler = lt.optim.ReduceLROnPlateau(optimizer, { patience = 0 }) } }
    end
  end

  it("on a plateau sees the metric that it monitors", function()
    assert.near(0.1, rate(fit(plateau "loss_value", nil, { max_epochs = 2 })), 1e-9)
  end)

  it("on a plateau needs that metric", function()
    assert.matches("nothing called 'los_value' was logged; .*did you mean 'loss_value'%?",
      tiny.error_of(fit, plateau "los_value"))
    assert.matches("needs monitor", tiny.error_of(fit, plateau(nil)))
    assert.equal(1.0, rate(fit(plateau("absent", false))))
  end)

  it("is stepped by lr_scheduler_step of the module", function()
    local net, calls = tiny.Line(), 0
    function net:configure_optimizers()
      local optimizer = sgd(self)
      return { optimizer }, { halving(optimizer) }
    end
    function net.lr_scheduler_step() calls = calls + 1 end
    tiny.trainer({ max_epochs = 2 }):fit(net, tiny.same(1))
    assert.equal(2, calls)
  end)
end)
