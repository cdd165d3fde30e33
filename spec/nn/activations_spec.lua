-- spec/nn/activations_spec.lua: activations as layers and functions: defaults, arguments, errors.
-- Values and derivatives: spec/ops/rows_spec.lua, spec/parity.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn

local function near(want, got)
  got = got:flatten():tolist()
  assert.equal(#want, #got)
  for i, value in ipairs(want) do assert.near(value, got[i], 1e-6) end
end

-- PyTorch's results of {-4, -0.4, 0, 0.4, 4}.
local WANTED <const> = {
  LeakyReLU = {-0.04, -0.004, 0, 0.4, 4}, ELU = {-0.98168437, -0.32967997, 0, 0.4, 4},
  CELU = {-0.98168437, -0.32967997, 0, 0.4, 4},
  SELU = {-1.72589851, -0.57961011, 0, 0.42028040, 4.20280409},
  PReLU = {-1, -0.1, 0, 0.4, 4}, Mish = {-0.07259175, -0.18891649, 0, 0.28903052, 3.99741263},
  Hardswish = {0, -0.17333333, 0, 0.22666666, 4}, Hardsigmoid = {0, 0.43333333, 0.5, 0.56666667, 1},
  Hardtanh = {-1, -0.4, 0, 0.4, 1}, ReLU6 = {0, 0, 0, 0.4, 4},
  Softplus = {0.01814993, 0.51301527, 0.69314718, 0.91301525, 4.01814993},
  LogSigmoid = {-4.01814993, -0.91301525, -0.69314718, -0.51301527, -0.01814993},
  Softsign = {-0.8, -0.28571429, 0, 0.28571429, 0.8}, Softshrink = {-3.5, 0, 0, 0, 3.5},
  Hardshrink = {-4, 0, 0, 0, 4},
  Tanhshrink = {-3.00067067, -0.02005103, 0, 0.02005103, 3.00067067},
}

describe("activation layers", function()
  local x = lt.tensor{-4, -0.4, 0, 0.4, 4}

  it("have PyTorch's defaults", function()
    for name, want in pairs(WANTED) do near(want, nn[name]()(x)) end
  end)

  it("take numbers by place and by name", function()
    near({-2, -0.2, 0, 0.4, 4}, nn.LeakyReLU(0.5)(x))
    near({-2, -0.2, 0, 0.4, 4}, nn.LeakyReLU{negative_slope = 0.5}(x))
    near({-2, -0.4, 0, 0.4, 3}, nn.Hardtanh(-2, 3)(x))
    near({-1, -0.4, 0, 0.4, 3}, nn.Hardtanh{max_val = 3}(x))
    near({7, 7, 7, 0.4, 4}, nn.Threshold(0.1, 7)(x))
    near({0.00016770, 0.18555030, 0.34657359, 0.58555030, 4}, nn.Softplus(2, 5)(x))
    near({-2, -0.2, 0, 0.4, 4}, nn.PReLU{init = 0.5}(x))
    assert.same({3}, nn.PReLU(3).weight.shape)
  end)

  it("write into x where they are asked to, with the same gradients", function()
    local made = {nn.ELU(0.5, {inplace = true}), nn.CELU{alpha = 0.5, inplace = true},
      nn.LeakyReLU(0.2, {inplace = true}), nn.Hardtanh(-0.5, 0.7, {inplace = true}),
      nn.Threshold(0.1, 2, {inplace = true})}
    for _, name in ipairs{"ReLU", "ReLU6", "SiLU", "Mish", "SELU", "Hardsigmoid", "Hardswish"} do
      made[#made + 1] = nn[name]{inplace = true}
    end
    for _, layer in ipairs(made) do
      local leaf = lt.tensor{-4, -0.4, 0.3, 0.4, 4}:requires_grad_()
      local y = leaf * 1
      assert(rawequal(y, layer(y)))
      y:sum():backward()
      local grad = leaf.grad
      leaf.grad, layer.inplace = nil, false
      local z = layer(leaf * 1)
      assert.same(z:tolist(), y:tolist())
      z:sum():backward()
      assert.same(leaf.grad:tolist(), grad:tolist())
    end
    local relu = nn.ReLU{inplace = true}
    assert.equal("ReLU({inplace = true})", tostring(relu))
    assert.equal("ELU(2, {inplace = true})", tostring(nn.ELU(2, {inplace = true})))
    assert.matches("relu_: in%-place write into a leaf that requires grad",
      error_of(relu, lt.zeros(2):requires_grad_()))
  end)

  it("say what they are", function()
    assert.equal("Sequential(\n  [1]: LeakyReLU(0.01)\n  [2]: Hardtanh(-1, 2)\n  [3]: Mish()\n"
      .. "  [4]: PReLU(3)\n  [5]: GLU(-1)\n)", tostring(nn.Sequential(nn.LeakyReLU(),
      nn.Hardtanh{max_val = 2}, nn.Mish(), nn.PReLU(3), nn.GLU())))
  end)

  it("refuse what does not fit", function()
    assert.matches("nn.LeakyReLU: unknown option 'slope'", error_of(nn.LeakyReLU, {slope = 1}))
    assert.matches("nn.ELU: alpha must be a number: got 'x'", error_of(nn.ELU, "x"))
    assert.matches("nn.Softplus: beta must be a number: got a table with beta: it is an argument, "
      .. "not an option: write its value alone", error_of(nn.Softplus, {beta = 1}, 2))
    assert.matches("nn.LeakyReLU: inplace must be true or false: got 2",
      error_of(nn.LeakyReLU, 1, 2))
    assert.matches("ReLU: one argument too many: 1", error_of(nn.ReLU, true, 1))
    assert.matches("ELU: alpha is given by place and by name", error_of(nn.ELU, 1, {alpha = 2}))
    assert.matches("nn.SiLU: inplace must be true or false: got 1",
      error_of(nn.SiLU, {inplace = 1}))
    assert.matches("one argument too many: a table", error_of(nn.Tanh, {inplace = true}))
    assert.matches("nn.CELU: alpha must not be 0", error_of(nn.CELU, 0))
    assert.matches("nn.Softshrink: lambd must be at least 0", error_of(nn.Softshrink, -1))
    assert.matches("nn.Hardtanh: min_val must be below max_val: got 2 and 1",
      error_of(nn.Hardtanh, 2, 1))
    assert.matches("nn.Threshold: option 'value' is required", error_of(nn.Threshold, 1))
    assert.matches("nn.PReLU: num_parameters must be at least 1", error_of(nn.PReLU, 0))
  end)
end)

describe("activations", function()
  it("are methods, with forms in place", function()
    local x = lt.tensor{-2, 0.5}
    near({-0.5, 0.5}, x:clone():leaky_relu_(0.25))
    near({-1, 0.5}, x:hardtanh{max_val = 2})
    near({9, 0.5}, lt.threshold(x, 0, 9))
    assert.equal(lt.elu, nn.functional.elu)
  end)

  it("keep integers where PyTorch does", function()
    local x = lt.tensor{-3, 0, 9}
    assert.same({-2, 0, 2}, x:hardtanh(-2, 2.9):tolist())
    assert.same({0, 0, 6}, x:relu6():tolist())
    assert.same({-1, -1, 9}, x:threshold(0, -1):tolist())
    assert.equal("i64", x:threshold(math.huge, 1e300).dtype)
  end)

  it("pass NaN on", function()
    for name in pairs(WANTED) do
      local y = nn[name]()(lt.tensor{0 / 0})
      assert.is_true(y:isnan():item(), name)
    end
  end)

  it("name what is wrong, with the shapes", function()
    local x = lt.zeros(2, 3)
    assert.matches("activations_spec.lua:%d+: hardtanh: min_val must be at most max_val, "
      .. "got 2 and 1", error_of(function() return x:hardtanh(2, 1) end))
    assert.matches("softshrink: lambd must be at least 0, got %-1",
      error_of(function() return x:softshrink(-1) end))
    assert.matches("celu: alpha must not be 0", error_of(function() return x:celu(0) end))
    assert.matches("threshold: argument 'threshold' is missing",
      error_of(function() return x:threshold() end))
    assert.matches("elu: unknown option 'alhpa'; did you mean 'alpha'%?",
      error_of(function() return x:elu{alhpa = 1} end))
    assert.matches("relu6: not defined for bool", error_of(function() return x:gt(0):relu6() end))
    assert.matches("glu: dim 2 must have an even size, got x of %[2, 3%]",
      error_of(function() return x:glu() end))
    assert.matches("prelu: the weight must be %[1%] or, for x %[N, C, ...%], %[C%], got %[2%] for "
      .. "x of %[2, 3%]", error_of(lt.prelu, x, lt.ones(2)))
  end)
end)

describe("gated linear units", function()
  local x = lt.tensor{{1.0, 2, 0, -1}, {0.5, -0.5, 3, 0}}
  local function sigmoid(v) return 1 / (1 + math.exp(-v)) end

  it("glu gates by the second half, swiglu by the first", function()
    near({0.5, 2 * sigmoid(-1), 0.5 * sigmoid(3), -0.25}, x:glu())
    near({sigmoid(1) * 0.5, 2 * sigmoid(2) * -0.5, 0, 0}, lt.swiglu(x, 1))
    near({0, -2 * sigmoid(2), 1.5 * sigmoid(0.5), 0}, nn.SwiGLU()(x))
  end)

  it("swiglu is that of two projections, joined", function()
    local joined = nn.Linear(3, 8, {bias = false})
    local gate, up = joined.weight:narrow(1, 1, 4), joined.weight:narrow(1, 5, 4)
    local h = lt.randn(2, 3)
    local want = h:matmul(gate:t()):silu() * h:matmul(up:t())
    near(want:flatten():tolist(), nn.SwiGLU()(joined(h)))
  end)
end)

describe("prelu", function()
  it("has a weight for each channel, and gradients as PyTorch's", function()
    local x = lt.tensor({{{-1.0, 2}, {3, -4}}, {{-5, 0}, {-6, 7}}}, {requires_grad = true})
    local layer = nn.PReLU(2)
    layer:load_state_dict{weight = lt.tensor{0.5, 0.1}}
    near({-0.5, 2, 3, -0.4, -2.5, 0, -0.6, 7}, layer(x))
    layer(x):sum():backward()
    near({0.5, 1, 1, 0.1, 0.5, 0.5, 0.1, 1}, x.grad)
    near({-6, -10}, layer.weight.grad)
  end)

  it("of infinity has a finite gradient", function()
    local x, w = lt.tensor{1 / 0, -1.0}, lt.parameter(lt.ones(1) * 0.5)
    lt.prelu(x, w):sum():backward()
    near({-1}, w.grad)
  end)
end)
