-- spec/optim/schedulers_spec.lua: rates against values computed on paper.

local CosineAnnealingLR = require "ltrain.optim.CosineAnnealingLR"
local LambdaLR = require "ltrain.optim.LambdaLR"
local ReduceLROnPlateau = require "ltrain.optim.ReduceLROnPlateau"
local StepLR = require "ltrain.optim.StepLR"
local error_of = require "spec.error_of"
local lt = require "ltrain"

-- A scheduler sees nothing of an optimizer but its groups.
local function optimizer_with(...)
  local groups = {}
  for i, lr in ipairs { ... } do groups[i] = { lr = lr } end
  return { param_groups = groups }
end

local function rates_of(optimizer, scheduler, count)
  local rates = { optimizer.param_groups[1].lr }
  for _ = 1, count do
    scheduler:step()
    rates[#rates + 1] = optimizer.param_groups[1].lr
  end
  return rates
end

local function near(expected, actual)
  assert.equal(#expected, #actual)
  for i, value in ipairs(expected) do assert.near(value, actual[i], 1e-12) end
end

describe("StepLR", function()
  it("multiplies by gamma every step_size steps", function()
    local optimizer = optimizer_with(0.8)
    near({ 0.8, 0.8, 0.4, 0.4, 0.2, 0.2 },
      rates_of(optimizer, StepLR(optimizer, 2, { gamma = 0.5 }), 5))
  end)

  it("has gamma 0.1", function()
    local optimizer = optimizer_with(1)
    near({ 1, 0.1, 0.01 }, rates_of(optimizer, StepLR(optimizer, 1), 2))
  end)

  it("scales each group from its own rate", function()
    local optimizer = optimizer_with(1, 10)
    local scheduler = StepLR(optimizer, 1)
    scheduler:step()
    near({ 0.1, 1 }, scheduler:get_last_lr())
  end)

  it("names a wrong step_size and a wrong option", function()
    assert.matches("schedulers_spec%.lua:%d+: optim%.StepLR: step_size must be an integer: got nil",
      error_of(function() StepLR(optimizer_with(1)) end))
    assert.matches("unknown option 'gama'; did you mean 'gamma'%?",
      error_of(StepLR, optimizer_with(1), 1, { gama = 2 }))
  end)

  it("wants an optimizer", function()
    assert.matches("optim%.StepLR: the first argument must be an optimizer: got 3",
      error_of(StepLR, 3, 1))
  end)
end)

describe("a scheduler", function()
  it("takes its arguments by name too", function()
    local function rates(name, ...)
      local optimizer = lt.optim.SGD({ lt.parameter(lt.ones(1)) }, { lr = 0.1, momentum = 0.9 })
      local scheduler, list = lt.optim[name](optimizer, ...), {}
      for i = 1, 4 do
        list[i] = optimizer.param_groups[1].lr
        scheduler:step()
      end
      return list
    end
    assert.same(rates("OneCycleLR", 0.2, { total_steps = 5 }),
      rates("OneCycleLR", { max_lr = 0.2, total_steps = 5 }))
    assert.same(rates("CyclicLR", 0.01, 0.2, { step_size_up = 2 }),
      rates("CyclicLR", { base_lr = 0.01, max_lr = 0.2, step_size_up = 2 }))
    for name, first in pairs { StepLR = { "step_size", 2 }, MultiStepLR = { "milestones", { 2 } },
      ExponentialLR = { "gamma", 0.5 }, CosineAnnealingLR = { "T_max", 3 },
      CosineAnnealingWarmRestarts = { "T_0", 2 } } do
      assert.same(rates(name, first[2]), rates(name, { [first[1]] = first[2] }), name)
    end
  end)
end)

describe("CosineAnnealingLR", function()
  it("follows half a cosine down to eta_min and up again", function()
    local optimizer = optimizer_with(1)
    local root = math.sqrt(0.5)
    near({ 1, (1 + root) / 2, 0.5, (1 - root) / 2, 0, (1 - root) / 2 },
      rates_of(optimizer, CosineAnnealingLR(optimizer, 4), 5))
  end)

  it("ends at eta_min", function()
    local optimizer = optimizer_with(1)
    local scheduler = CosineAnnealingLR(optimizer, 2, { eta_min = 0.2 })
    near({ 1, 0.6, 0.2 }, rates_of(optimizer, scheduler, 2))
  end)
end)

describe("LambdaLR", function()
  it("multiplies by the function of the step", function()
    local optimizer = optimizer_with(0.5)
    near({ 0.5, 0.25, 0.5 / 3 },
      rates_of(optimizer, LambdaLR(optimizer, function(n) return 1 / (n + 1) end), 2))
  end)

  it("takes a function a group", function()
    local optimizer = optimizer_with(1, 1)
    local scheduler = LambdaLR(optimizer,
      { function() return 2 end, function(n) return n end })
    scheduler:step()
    near({ 2, 1 }, scheduler:get_last_lr())
  end)

  it("compares the number of functions with that of groups", function()
    assert.matches("optim%.LambdaLR: 1 functions for 2 groups",
      error_of(LambdaLR, optimizer_with(1, 1), { function() return 1 end }))
    assert.matches("factor 1 must be a function: got 3", error_of(LambdaLR, optimizer_with(1), 3))
  end)
end)

describe("ReduceLROnPlateau", function()
  -- The rate after each of the values.
  local function after(optimizer, scheduler, values)
    local rates = {}
    for i, value in ipairs(values) do
      scheduler:step(value)
      rates[i] = optimizer.param_groups[1].lr
    end
    return rates
  end

  it("reduces when patience is used up", function()
    local optimizer = optimizer_with(1)
    local scheduler = ReduceLROnPlateau(optimizer, { patience = 1 })
    near({ 1, 1, 0.1, 0.1, 0.01 }, after(optimizer, scheduler, { 5, 5, 5, 5, 5 }))
  end)

  it("counts anew after a better value", function()
    local optimizer = optimizer_with(1)
    local scheduler = ReduceLROnPlateau(optimizer, { patience = 1, factor = 0.5 })
    near({ 1, 1, 1, 1, 0.5 }, after(optimizer, scheduler, { 5, 5, 4, 4, 4 }))
  end)

  it("asks for an improvement by the threshold, relative or absolute", function()
    local optimizer = optimizer_with(1)
    local relative = ReduceLROnPlateau(optimizer, { patience = 0, threshold = 0.1 })
    near({ 1, 0.1, 0.1 }, after(optimizer, relative, { 10, 9.5, 8.9 }))
    optimizer = optimizer_with(1)
    local absolute = ReduceLROnPlateau(optimizer,
      { patience = 0, threshold = 0.1, threshold_mode = "abs" })
    near({ 1, 1, 0.1 }, after(optimizer, absolute, { 10, 9.5, 9.45 }))
  end)

  it("looks for larger values with mode = max", function()
    local optimizer = optimizer_with(1)
    local scheduler = ReduceLROnPlateau(optimizer, { mode = "max", patience = 0 })
    near({ 1, 1, 0.1 }, after(optimizer, scheduler, { 1, 2, 1.5 }))
  end)

  it("counts nothing while it cools down", function()
    local optimizer = optimizer_with(1)
    local scheduler = ReduceLROnPlateau(optimizer, { patience = 0, cooldown = 2 })
    near({ 1, 0.1, 0.1, 0.1, 0.01 }, after(optimizer, scheduler, { 5, 5, 5, 5, 5 }))
  end)

  it("stops at min_lr and makes no change below eps", function()
    local optimizer = optimizer_with(1)
    local scheduler = ReduceLROnPlateau(optimizer, { patience = 0, min_lr = 0.05 })
    near({ 1, 0.1, 0.05, 0.05 }, after(optimizer, scheduler, { 5, 5, 5, 5 }))
    optimizer = optimizer_with(1e-8)
    scheduler = ReduceLROnPlateau(optimizer, { patience = 0 })
    near({ 1e-8, 1e-8 }, after(optimizer, scheduler, { 5, 5 }))
  end)

  it("takes NaN for no improvement", function()
    local optimizer = optimizer_with(1)
    local scheduler = ReduceLROnPlateau(optimizer, { patience = 0 })
    near({ 1, 0.1 }, after(optimizer, scheduler, { 5, 0 / 0 }))
  end)

  it("needs the value", function()
    local scheduler = ReduceLROnPlateau(optimizer_with(1))
    assert.matches("step needs the metric's value: got nil", error_of(scheduler.step, scheduler))
  end)
end)

describe("the state of a scheduler", function()
  it("brings back rate and position", function()
    local optimizer = optimizer_with(1)
    local scheduler = StepLR(optimizer, 2)
    for _ = 1, 3 do scheduler:step() end
    local other = optimizer_with(7)
    local restored = StepLR(other, 2)
    restored:load_state_dict(scheduler:state_dict())
    near({ 0.1 }, restored:get_last_lr())
    restored:step()
    near({ 0.01 }, restored:get_last_lr())
  end)

  it("is a copy", function()
    local scheduler = StepLR(optimizer_with(1), 2)
    local state = scheduler:state_dict()
    scheduler:step()
    assert.equal(0, state.last_epoch)
  end)

  it("keeps what a plateau has seen", function()
    local optimizer = optimizer_with(1)
    local scheduler = ReduceLROnPlateau(optimizer, { patience = 1 })
    scheduler:step(5)
    scheduler:step(6)
    local other = optimizer_with(1)
    local restored = ReduceLROnPlateau(other, { patience = 1 })
    restored:load_state_dict(scheduler:state_dict())
    restored:step(5.5)
    near({ 0.1 }, restored:get_last_lr())
  end)

  it("refuses that of another number of groups", function()
    local scheduler = StepLR(optimizer_with(1), 2)
    local other = StepLR(optimizer_with(1, 2), 2)
    assert.matches("StepLR: load_state_dict: the state has 1 groups, the scheduler 2",
      error_of(other.load_state_dict, other, scheduler:state_dict()))
  end)
end)

describe("multiply_rates", function()
  -- The rates of a scheduler that make(optimizer) gives, over 6 steps; multiplied by `factor`
  -- before step `at`; continued by a new one with its state before step `again`.
  local function course(make, factor, at, again)
    local optimizer = { param_groups = { { lr = 0.4, momentum = 0.9 } } }
    local scheduler, rates = make(optimizer), {}
    for i = 1, 6 do
      if i == at then scheduler:multiply_rates(factor) end
      if i == again then
        local state = scheduler:state_dict()
        local group = optimizer.param_groups[1]
        optimizer = { param_groups = { { lr = 0.4, momentum = 0.9 } } }
        scheduler = make(optimizer)
        optimizer.param_groups[1].lr = group.lr
        scheduler:load_state_dict(state)
      end
      rates[i] = optimizer.param_groups[1].lr
      scheduler:step()
    end
    return rates
  end

  for name, make in pairs {
    StepLR = function(o) return StepLR(o, 2, { gamma = 0.5, warmup = 2 }) end,
    OneCycleLR = function(o) return lt.optim.OneCycleLR(o, 1.0, { total_steps = 8 }) end,
    CosineAnnealingLR = function(o) return CosineAnnealingLR(o, 5, { eta_min = 0.1 }) end,
    SequentialLR = function(o)
      return lt.optim.SequentialLR(o, { lt.optim.ConstantLR(o), lt.optim.ExponentialLR(o, 0.9) },
        { 3 })
    end,
  } do
    it("multiplies the rest of the schedule, also of a resumed one: " .. name, function()
      local plain, times = course(make), course(make, 0.75, 3, 5)
      local wanted = {}
      for i, rate in ipairs(plain) do wanted[i] = i < 3 and rate or 0.75 * rate end
      near(wanted, times)
    end)
  end

  it("leaves the momentum of a cycle as it is", function()
    local optimizer = { param_groups = { { lr = 0.4, momentum = 0.9 } } }
    local scheduler = lt.optim.OneCycleLR(optimizer, 1.0, { total_steps = 8 })
    local before = optimizer.param_groups[1].momentum
    scheduler:multiply_rates(0.5)
    assert.equal(before, optimizer.param_groups[1].momentum)
  end)

  it("lets SWALR begin where the rates are, and end at its own, multiplied", function()
    local optimizer = optimizer_with(0.4)
    local scheduler = lt.optim.SWALR(optimizer, 0.1, 2, "linear")
    optimizer.param_groups[1].lr = 0.2 -- as the Trainer has multiplied it
    scheduler:multiply_rates(0.5)
    assert.near(0.2, optimizer.param_groups[1].lr, 1e-12)
    near({ 0.2, 0.125, 0.05 }, rates_of(optimizer, scheduler, 2))
  end)

  it("needs a factor that is not negative", function()
    local scheduler = StepLR(optimizer_with(0.1), 1)
    assert.matches("StepLR:multiply_rates: factor must be at least 0: got %-1",
      error_of(scheduler.multiply_rates, scheduler, -1))
  end)
end)
