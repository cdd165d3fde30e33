-- spec/xla/training_spec.lua: training on an XLA device gives the CPU's losses.
-- tags: slow, unsanitized
local lt = require "ltrain"
local plugin = require "spec.xla.plugin"

local function losses(device, make)
  lt.seed(1)
  local model = lt.nn.Sequential(lt.nn.Linear(8, 16), lt.nn.ReLU(), lt.nn.Linear(16, 4))
  local x, target = lt.randn(64, 8):to(device), lt.randint(0, 4, { 64 }):to(device)
  model:to(device)
  local optimizer, list = make(model:parameters()), {}
  for step = 1, 20 do
    optimizer:zero_grad()
    local loss = lt.cross_entropy(model(x), target)
    loss:backward()
    optimizer:step()
    list[step] = loss:item()
  end
  return list
end

local function same(make)
  if plugin.missing then return pending(plugin.missing) end
  local want, got = losses("cpu", make), losses("xla", make)
  for step = 1, 20 do
    assert.near(want[step], got[step], 1e-5 * math.abs(want[step]), "step " .. step)
  end
  assert.is_true(got[20] < got[1])
end

describe("training on xla", function()
  it("with Adam has the CPU's losses", function()
    same(function(parameters) return lt.optim.Adam(parameters, { lr = 1e-2 }) end)
  end)

  it("with SGD and momentum has the CPU's losses", function()
    same(function(parameters)
      return lt.optim.SGD(parameters, { lr = 1e-1, momentum = 0.9, dampening = 0.3 })
    end)
  end)

  it("with rows of updates.def has the CPU's losses", function()
    same(function(parameters) return lt.optim.RMSprop(parameters, { lr = 1e-3 }) end)
  end)
end)

describe("tensors on xla", function()
  local function test(name, fn)
    it(name, function()
      if plugin.missing then return pending(plugin.missing) end
      fn(function(...) return lt.tensor(...):to("xla") end)
    end)
  end
  local function values(t) return t:to("cpu"):tolist() end

  test("are written in part through views", function(of)
    local x = of { { 1, 2, 3 }, { 4, 5, 6 } }
    x:select(2, 2):fill_(0)
    x:narrow(1, 2, 1):add_(10)
    assert.same({ { 1, 0, 3 }, { 14, 10, 16 } }, values(x))
  end)

  test("that are made of zeros, or of no values, are written in part", function()
    local x = lt.zeros(2, 3, { device = "xla" })
    local y, z = x + 1, lt.empty(3, { device = "xla" })
    x:select(2, 2):fill_(4)
    z:narrow(1, 1, 2):fill_(5)
    assert.same({ { 0, 4, 0 }, { 0, 4, 0 } }, values(x))
    assert.same({ { 1, 1, 1 }, { 1, 1, 1 } }, values(y))
    assert.same({ 5, 5 }, values(z:narrow(1, 1, 2)))
    assert.equal(-math.huge, (1 / lt.full({ 1 }, -0.0, { device = "xla" })):item())
  end)

  test("are read through any strides", function(of)
    local x = of { { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 } }
    assert.same({ { 1, 4, 7 }, { 2, 5, 8 }, { 3, 6, 9 } }, values(x:t() + 0))
    assert.same({ 1, 5, 9 }, values(x:diagonal() + 0))
    assert.same({ { 5, 5 }, { 5, 5 } }, values(x:select(1, 2):narrow(1, 2, 1):expand(2, 2) + 0))
  end)

  test("keep their values while others that share their memory are written", function(of)
    local x = of { 1, 2, 3 }
    local y = x + 0
    x:mul_(2)
    assert.same({ 1, 2, 3 }, values(y))
    assert.same({ 2, 4, 6 }, values(x))
  end)

  test("are read and written at positions that a loop changes", function(of)
    local x, y, columns = of { { 1, 2, 3 }, { 4, 5, 6 } }, of { 0, 0, 0, 0 }, {}
    for t = 1, 3 do columns[t] = values(x:select(2, t) * 2) end
    for t = 1, 4 do
      y:narrow(1, t, 1):fill_(t)
      assert.equal(t, y:sum():item() - (t - 1) * t // 2)
    end
    assert.same({ { 2, 8 }, { 4, 10 }, { 6, 12 } }, columns)
    assert.same({ 1, 2, 3, 4 }, values(y))
  end)

  test("go through long chains of additions", function(of)
    local x, y = of { 1, 2 }, of { 1, 2 }
    for _ = 1, 70 do x, y = x + 1, y:mul_(-1) end
    assert.same({ 71, 72 }, values(x))
    assert.same({ 1, 2 }, values(y))
  end)

  test("are copied by a reshape that cannot be a view", function(of)
    assert.same({ 1, 4, 2, 5, 3, 6 }, values(of({ { 1, 2, 3 }, { 4, 5, 6 } }):t():reshape(6)))
  end)

  test("of a million elements are read in part", function()
    local x = lt.arange(0, 1000000):to("f32"):to "xla"
    assert.equal(776, x[777]:item())
    assert.same({ 499, 500, 501 }, x:narrow(1, 500, 3):tolist())
    assert.equal(5, (x + 1)[5]:item())
  end)

  test("that are no probabilities are refused", function(of)
    assert.error_matches(function() lt.multinomial(of { { 0.5, 0.1 }, { 0, 0 } }, 1):tolist() end,
      "multinomial: all probabilities are 0 %(row 2%)")
  end)

  test("of bad indices fail with the line", function(of)
    local x, index = of { 1, 2, 3 }, lt.tensor({ 2, 9 }, { dtype = "i64" }):to("xla")
    local ok, err = pcall(function() return x:index_select(1, index):to("cpu") end)
    assert.is_false(ok)
    assert.matches("training_spec.lua:%d+: .*index_select.*9", tostring(err))
  end)
end)
