-- spec/nn/init_spec.lua: the bounds and spreads that the formulas give.

local lt = require "ltrain"

local init <const> = lt.nn.init
local runtime <const> = require "ltrain.c".runtime

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

  it("draws what a draw of that shape gives, in place", function()
    for _, dtype in ipairs { "f32", "f64", "bf16" } do
      lt.seed(7)
      local u, n = lt.rand(5, 9, { dtype = dtype }), lt.randn(5, 9, { dtype = dtype })
      lt.seed(7)
      local t = lt.empty(9, 5, { dtype = dtype }):t()
      assert.same((u * 4 + -1):tolist(), init.uniform_(t, -1.0, 3.0):tolist())
      assert.same((n * 0.5 + 2):tolist(), init.normal_(t, 2, 0.5):tolist())
    end
  end)

  it("x:uniform_ and x:normal_ cut the history, and refuse leaves that require grad", function()
    local w = lt.ones(3, { requires_grad = true })
    local y = w * 2
    y:normal_(1, 2)
    lt.sum(y * w):backward()
    assert.same(y:tolist(), w.grad:tolist())
    local ok, message = pcall(w.uniform_, w)
    assert.is_false(ok)
    assert.matches("uniform_: in%-place write into a leaf that requires grad", message)
    ok, message = pcall(w.normal_, lt.zeros(2, { dtype = "i64" }))
    assert.is_false(ok)
    assert.matches("normal_: only floating%-point tensors can be filled with random numbers, "
      .. "this is i64", message)
  end)

  it("needs no memory beside the tensor's: layers peak at the size of their weights", function()
    local layers = {
      Linear = function() return lt.nn.Linear(1000, 1000) end,
      Embedding = function() return lt.nn.Embedding(1000, 1000, { padding_idx = 3 }) end,
      Conv2d = function() return lt.nn.Conv2d(100, 1000, { 2, 5 }) end,
    }
    for name, make in pairs(layers) do
      collectgarbage()
      runtime.reset_peak_memory()
      local before = runtime.memory().live_bytes
      local layer <const> = make()
      local bytes = 0
      for _, p in ipairs(layer:parameters()) do bytes = bytes + p:numel() * 4 end
      local peak = runtime.memory().peak_bytes - before
      assert.is_true(peak <= 1.05 * bytes, ("%s: %d of %d bytes"):format(name, peak, bytes))
    end
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

describe("nn.init, further", function()
  it("trunc_normal_ stays within its limits, and is normal there", function()
    local t = init.trunc_normal_(lt.zeros(20000))
    local mean, variance, largest = spread(t)
    assert.near(0, mean, 0.02)
    assert.near(0.7737, variance, 0.02) -- of a normal distribution cut at 2
    assert.is_true(largest <= 2 and largest > 1.98)
    t = init.trunc_normal_(lt.zeros(1000), { mean = 3, std = 0.5, a = 3.5, b = 5 })
    assert.is_true(t:amin():item() >= 3.5 and t:amax():item() <= 5)
    assert.has_error(function() init.trunc_normal_(t, { a = 1, b = 1 }) end)
  end)

  it("orthogonal_ has orthogonal rows or columns of length gain", function()
    for _, shape in ipairs { { 6, 4 }, { 4, 6 }, { 3, 2, 2 }, { 1, 5 } } do
      local w = init.orthogonal_(lt.zeros(shape), { gain = 2 }):reshape(shape[1], -1)
      local rows, columns = w.shape[1], w.shape[2]
      local product = rows < columns and w:matmul(w:t()) or w:t():matmul(w)
      local n = math.min(rows, columns)
      local off = product / 4 - init.eye_(lt.empty(n, n))
      assert.is_true(off:abs():amax():item() < 1e-6)
    end
  end)

  it("dirac_ makes convolutions that change nothing", function()
    local x = lt.randn(2, 4, 5, 5)
    local w = init.dirac_(lt.empty(4, 4, 3, 3))
    assert.is_true((lt.conv2d(x, w, nil, { padding = 1 }) - x):abs():amax():item() == 0)
    local halves = init.dirac_(lt.empty(4, 2, 3, 3), { groups = 2 })
    local y = lt.conv2d(x, halves, nil, { padding = 1, groups = 2 })
    assert.is_true((y - x):abs():amax():item() == 0)
  end)

  it("calculate_gain is PyTorch's", function()
    assert.near(math.sqrt(2), init.calculate_gain("relu"), 1e-12)
    assert.near(math.sqrt(2 / 1.04), init.calculate_gain("leaky_relu", 0.2), 1e-12)
    assert.equal(5 / 3, init.calculate_gain("tanh"))
  end)
end)
