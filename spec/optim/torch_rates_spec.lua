-- spec/optim/torch_rates_spec.lua: schedulers against PyTorch's (torch_rates.py says how the
-- numbers were made), warm-up, and their state.

local error_of = require "spec.error_of"
local lt = require "ltrain"
local recorded = require "spec.recorded"

local optim <const> = lt.optim

local function optimizer_of(kind)
  local w = { lt.parameter(lt.ones(1)), lt.parameter(lt.ones(1)) }
  local groups = { { params = { w[1] } }, { params = { w[2] }, lr = 0.2 } }
  if kind == "SGD" then return optim.SGD(groups, { lr = 0.8, momentum = 0.6 }) end
  return optim.Adam(groups, { lr = 0.8 })
end

local function make(code, kind)
  local o = optimizer_of(kind)
  local chunk = assert(load("local optim, o = ... return optim." .. code))
  return chunk(optim, o), o
end

for _, case in ipairs(recorded "spec/optim/torch_rates.jsonl") do
  local code, kind = case.code, case.optimizer
  describe(("%s with %s"):format(code, kind), function()
    it("has PyTorch's rates, and momenta", function()
      local scheduler, o = make(code, kind)
      for step = 1, #case.momenta do
        local first, second = o.param_groups[1], o.param_groups[2]
        assert.near(case.rates[1][step], first.lr, 1e-10)
        assert.near(case.rates[2][step], second.lr, 1e-10)
        assert.near(case.momenta[step], first.momentum or first.betas[1], 1e-10)
        scheduler:step()
      end
    end)

    it("resumes from its state", function()
      local scheduler, o = make(code, kind)
      for _ = 1, 6 do scheduler:step() end
      local other, p = make(code, kind)
      other:load_state_dict(scheduler:state_dict())
      for _ = 1, 3 do
        assert.same(scheduler:get_last_lr(), other:get_last_lr())
        assert.equal(o.param_groups[1].momentum, p.param_groups[1].momentum)
        scheduler:step()
        other:step()
      end
    end)
  end)
end

describe("warmup", function()
  local function rates(make_scheduler, n)
    local o = optim.SGD({ lt.parameter(lt.ones(1)) }, { lr = 1.0 })
    local scheduler, list = make_scheduler(o), {}
    for i = 1, n do
      list[i] = o.param_groups[1].lr
      if scheduler.reduce_on_plateau then scheduler:step(1.0) else scheduler:step() end
    end
    return list
  end

  local function near(want, got)
    for i, value in ipairs(want) do assert.near(value, got[i], 1e-12) end
  end

  it("raises the rate in equal steps, then the schedule begins", function()
    near({ 0.25, 0.5, 0.75, 1, 1, 0.1, 0.1, 0.01 },
      rates(function(o) return optim.StepLR(o, 2, { warmup = 3 }) end, 8))
    near({ 1 / 3, 2 / 3, 1, 0.5, 0 }, rates(function(o)
      return optim.CosineAnnealingLR(o, 2, { warmup = 2 })
    end, 5))
    near({ 0.25, 0.5, 0.5, 1 }, rates(function(o)
      return optim.LambdaLR(o, function(n) return n < 2 and 0.5 or 1 end, { warmup = 1 })
    end, 4))
  end)

  it("warms momentum schedules too, which keep their momentum", function()
    local o = optim.SGD({ lt.parameter(lt.ones(1)) }, { lr = 1.0, momentum = 0.5 })
    local scheduler = optim.OneCycleLR(o, 1.0, { total_steps = 10, warmup = 1 })
    assert.near(0.02, o.param_groups[1].lr, 1e-12)
    assert.near(0.95, o.param_groups[1].momentum, 1e-12)
    scheduler:step()
    assert.near(0.04, o.param_groups[1].lr, 1e-12)
  end)

  it("comes before a plateau is looked for", function()
    near({ 1 / 3, 2 / 3, 1, 1, 1, 0.1 }, rates(function(o)
      return optim.ReduceLROnPlateau(o, { patience = 1, warmup = 2 })
    end, 6))
  end)

  it("must be a number of steps", function()
    local o = optimizer_of "SGD"
    assert.matches("optim%.StepLR: warmup must be at least 0: got %-1",
      error_of(optim.StepLR, o, 1, { warmup = -1 }))
  end)
end)

describe("Schedulers that take others or bounds", function()
  it("say what is wrong", function()
    local o, p = optimizer_of "SGD", optimizer_of "SGD"
    local step = optim.StepLR(o, 1)
    assert.matches("optim%.SequentialLR: 1 schedulers need 0 milestones: got 1",
      error_of(optim.SequentialLR, o, { step }, { 3 }))
    assert.matches("optim%.SequentialLR: scheduler 1 is of another optimizer",
      error_of(optim.SequentialLR, p, { step }, {}))
    assert.matches("optim%.ChainedScheduler: scheduler 1 must be one whose rate follows",
      error_of(optim.ChainedScheduler, { optim.ReduceLROnPlateau(o) }))
    assert.matches("optim%.OneCycleLR: total_steps is needed, or epochs and steps_per_epoch",
      error_of(optim.OneCycleLR, o, 0.1))
    assert.matches("optim%.CyclicLR: max_lr: 3 numbers for 2 groups",
      error_of(optim.CyclicLR, o, 0.1, { 1.0, 2.0, 3.0 }))
    local plain = optim.Adagrad { lt.parameter(lt.ones(1)) }
    assert.matches("optim%.CyclicLR: cycle_momentum = true needs an optimizer with momentum",
      error_of(optim.CyclicLR, plain, 0.1, 1.0))
    local cycle = optim.OneCycleLR(o, 0.1, { total_steps = 2 })
    cycle:step()
    cycle:step()
    assert.matches("optim%.OneCycleLR: step 3 of 2", error_of(function() cycle:step() end))
  end)
end)

describe("SWALR", function()
  it("begins with the rate that another scheduler has reached", function()
    local o = optimizer_of("SGD")
    local before = optim.ExponentialLR(o, 0.5)
    local swa = optim.SWALR(o, 0.1, 2, "linear")
    before:step()
    assert.same({ 0.4, 0.1 }, swa:get_last_lr())
    swa:step()
    assert.near(0.25, o.param_groups[1].lr, 1e-12)
    swa:step()
    assert.same({ 0.1, 0.1 }, swa:get_last_lr())
  end)
end)
