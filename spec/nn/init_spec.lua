-- spec/nn/init_spec.lua: the bounds and spreads that the formulas give.

local lt = require "ltrain"

local init <const> = lt.nn.init

-- Mean, variance, and the largest absolute value.
local function spread(tensor)
  local list, sum, squares, largest = tensor:flatten():tolist(), 0, 0, 0
  for _, x in ipairs(list) do
    sum, squares, largest = sum + x, squares + x * x, math.max(largest, math.abs(x))
  end
  local mean = sum / #list
  return mean, squares / #list - mean * mean, largest
end

-- A uniform fill reaches nearly to its bound and no further; its variance is bound^2 / 3.
local function is_uniform(tensor, bound)
  local mean, variance, largest = spread(tensor)
  assert.near(0, mean, bound * 0.03)
  assert.near(bound ^ 2 / 3, variance, bound ^ 2 * 0.02)
  assert.is_true(largest <= bound and largest > bound * 0.99)
end

local function is_normal(tensor, std)
  local mean, variance = spread(tensor)
  assert.near(0, mean, std * 0.05)
  assert.near(std ^ 2, variance, std ^ 2 * 0.05)
end

before_each(function() lt.seed(2) end)

describe("nn.init", function()
  it("uniform_ fills low..high", function()
    local t = init.uniform_(lt.zeros(10000), 2.0, 4.0)
    local mean = spread(t)
    assert.near(3, mean, 0.03)
    assert.is_true(t:min():item() >= 2 and t:max():item() < 4)
  end)

  it("normal_ has mean and deviation", function()
    local mean, variance = spread(init.normal_(lt.zeros(10000), 5.0, 2.0))
    assert.near(5, mean, 0.1)
    assert.near(4, variance, 0.2)
  end)

  it("constant_, zeros_ and ones_ fill", function()
    assert.same({ 3, 3 }, init.constant_(lt.zeros(2), 3.0):tolist())
    assert.same({ 1, 1 }, init.ones_(lt.zeros(2)):tolist())
    assert.same({ 0, 0 }, init.zeros_(lt.ones(2)):tolist())
  end)

  it("writes into a parameter without history and gives it back", function()
    local p = lt.parameter(lt.zeros(3))
    assert.is_true(rawequal(p, init.uniform_(p)))
    assert.is_true(p.is_leaf and p.requires_grad)
  end)

  it("keeps the dtype", function()
    assert.equal("f64", init.normal_(lt.zeros(3, { dtype = "f64" })).dtype)
  end)

  it("fans counts what an output sums over, and what an input reaches", function()
    assert.same({ 3 * 5 * 5, 8 * 5 * 5 }, { init.fans(lt.zeros(8, 3, 5, 5)) })
    local ok, message = pcall(init.fans, lt.zeros(3))
    assert.is_false(ok)
    assert.matches("init: fans need a tensor of two or more dims: got %[3%]", message)
  end)

  it("kaiming_uniform_ has bound gain * sqrt(3 / fan)", function()
    is_uniform(init.kaiming_uniform_(lt.zeros(100, 96)), math.sqrt(2) * math.sqrt(3 / 96))
    is_uniform(init.kaiming_uniform_(lt.zeros(100, 96), { a = math.sqrt(5) }), 1 / math.sqrt(96))
    is_uniform(init.kaiming_uniform_(lt.zeros(100, 96), { mode = "fan_out",
      nonlinearity = "tanh" }), 5 / 3 * math.sqrt(3 / 100))
  end)

  it("kaiming_normal_ has deviation gain / sqrt(fan)", function()
    is_normal(init.kaiming_normal_(lt.zeros(100, 200), { nonlinearity = "relu" }),
      math.sqrt(2 / 200))
  end)

  it("xavier_uniform_ and xavier_normal_ balance both fans", function()
    is_uniform(init.xavier_uniform_(lt.zeros(100, 50)), math.sqrt(6 / 150))
    is_normal(init.xavier_normal_(lt.zeros(100, 50), { gain = 2.0 }), 2 * math.sqrt(2 / 150))
  end)

  it("names a wrong option", function()
    local ok, message = pcall(init.kaiming_uniform_, lt.zeros(2, 2), { mode = "fan_inn" })
    assert.is_false(ok)
    assert.matches("init%.kaiming_uniform_: mode must be 'fan_in' or 'fan_out': got 'fan_inn'; "
      .. "did you mean 'fan_in'%?", message)
  end)
end)
