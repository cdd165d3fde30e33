-- spec/autograd/func_spec.lua: lt.func and lt.vmap. Numbers are those of torch.func, of the same
-- functions.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local func, nn = lt.func, lt.nn

local A <const>, B <const> = lt.tensor { 0.3, -0.7 },
  lt.tensor { { 0.5, 1.1 }, { -0.4, 0.2 }, { 0.9, -1.3 } }

local function number(a, b)
  local product = b:matmul(a)
  return (product:sin() * product):sum()
end

local function near(shape, want, got)
  assert.same(shape, got.shape)
  for i, value in ipairs(got:flatten():tolist()) do assert.near(want[i], value, 5e-6) end
end

local function cube(x) return (x ^ 3):sum() end

describe("lt.func.grad", function()
  it("is by any arguments, and by tables of them", function()
    local SLOPE <const> = { -0.3256919, 0.7599478, -0.1525026, 0.3558394, 0.4122292, -0.9618682 }
    near({ 3, 2 }, SLOPE, func.grad(number, 2)(A, B))
    near({ 3, 2 }, SLOPE, func.grad(number, { argnums = { 1, -1 } })(A, B)[2])
    near({ 3, 2 }, SLOPE, func.grad(function(p)
      return number(p.a, p.b)
    end)({ a = A, b = B }).b)
  end)

  it("returns the value too, and what else the function returned", function()
    local function with_aux(x) return cube(x), x * 2 end
    local grad, value, aux = func.grad_and_value(with_aux, { has_aux = true })(A)
    near({ 2 }, { 0.27, 1.47 }, grad)
    near({}, { -0.316 }, value)
    near({ 2 }, { 0.6, -1.4 }, aux)
    assert.is_false(value.requires_grad or aux.requires_grad)
    near({ 2 }, { 0.6, -1.4 }, select(2, func.grad(with_aux, 1, true)(A)))
    assert.equal(2, select("#", func.grad_and_value(cube)(A)))
    near({ 2 }, { 0.27, 1.47 }, func.grad(function(x) return cube(x), nil end, 1, true)(A))
  end)

  it("is nested", function()
    local second = func.grad(function(x) return func.grad(cube)(x):sum() end)
    local third = func.grad(function(x) return second(x):sum() end)
    near({ 2 }, { 1.8, -4.2 }, second(A))
    near({ 2 }, { 6, 6 }, third(A))
    near({ 2 }, { 0, 0 }, func.grad(function(x) return third(x):sum() end)(A))
  end)

  it("has a history where some other tensor wants a gradient, and only there", function()
    local net = nn.Linear(2, 3)
    net:load_state_dict { weight = B, bias = lt.zeros(3) }
    local slope = func.grad(function(x) return net(x):tanh():sum() end)
    local got = slope(A)
    got:square():sum():backward()
    near({ 3, 2 }, { 0.6933795, -0.0241063, 0.4838009, 1.012171, 0.3109594, -0.0037753 },
      net.weight.grad)
    assert.is_false(func.grad(cube)(A).requires_grad)
    assert.is_false(lt.no_grad(slope, A).requires_grad)
    local x = A:clone():requires_grad_()
    near({ 2 }, { 1.8, -4.2 }, lt.grad(func.grad(cube)(x):sum(), x))
    assert.is_nil(x.grad)
  end)

  it("names what is wrong", function()
    assert.matches("grad: the function must return a tensor without dims, as sum%(%) does: got",
      error_of(func.grad(function(x) return x end), A))
    assert.matches("grad: argnums must be places of the 1 arguments, from 1: got 0",
      error_of(func.grad(cube, 0), A))
    assert.matches("grad: derivatives are by tensors of floats: got 2",
      error_of(func.grad(cube), 2))
    assert.matches("there is no 'linearize'", error_of(function() return func.linearize end))
  end)
end)

describe("lt.func", function()
  it("has jacrev, jacfwd and hessian", function()
    for _, name in ipairs { "jacrev", "jacfwd" } do
      local got = func[name](function(p) return { y = p.a * p.b:sum() } end)({ a = A, b = B })
      near({ 2, 2 }, { 1, 0, 0, 1 }, got.y.a)
      near({ 2, 3, 2 }, { 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, -0.7, -0.7, -0.7, -0.7, -0.7, -0.7 },
        got.y.b)
    end
    local list = func.jacrev(function(a, b) return a * 2, b:sum() end, { 1, 2 })(A, B)
    near({ 2, 2 }, { 2, 0, 0, 2 }, list[1][1])
    near({ 3, 2 }, { 1, 1, 1, 1, 1, 1 }, list[2][2])
    local got = func.hessian(number, { 1, 2 })(A, B)
    near({ 2, 2 }, { 0.348789, 0.933005, 0.933005, 1.052008 }, got[1][1])
    near({ 2, 3, 2 }, { -0.8955125, -0.4436303, -0.7322546, 0.522463, 1.285217, 0.2073867,
      0.4182801, -2.061626, 0.1119563, -0.7695734, 0.1283823, 1.074539 }, got[1][2])
    near({ 2, 2 }, { 1.8, 0, 0, -4.2 }, func.hessian(cube)(A))
    assert.is_false(got[1][1].requires_grad)
  end)

  it("has vjp and jvp", function()
    local function f(a, b) return b:matmul(a):sin(), (a ^ 3):sum() * b:sum() end
    local results, product = func.vjp(f, A, B)
    near({ 3 }, { -0.5810351, -0.2570806, 0.924606 }, results[1])
    for _ = 1, 2 do
      local by_a, by_b = product(lt.tensor { 1, -2, 0.5 }, lt.tensor(3.0))
      near({ 2 }, { 2.161468, 4.67111 }, by_a)
      near({ 3, 2 }, { -0.7038364, -1.517715, -1.527834, 0.4049461, -0.8908612, -1.081324 }, by_b)
      assert.is_false(by_a.requires_grad)
    end
    local value, made = func.jvp(f, { A, B }, { lt.tensor { 1.0, 2.0 },
      lt.tensor { { 0.1, -0.2 }, { 0.3, 0.4 }, { -0.5, 0.6 } } })
    near({}, { -0.316 }, value[2])
    near({ 3 }, { 2.335831, -0.1836141, -0.8646995 }, made[1])
    near({}, { 2.9888 }, made[2])
    assert.equal("aux", select(3, func.vjp(function(a) return a, "aux" end, A,
      { has_aux = true })))
    assert.matches("vjp: the vectors must be tensors as the results are: tensor 1 must be [3]: got",
      error_of(product, A, A), 1, true)
  end)

  it("calls modules with other tensors", function()
    local net = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    local before = net[1].weight
    local weight = lt.tensor({ { 0.2, -0.5 } }, { requires_grad = true })
    local mean = lt.zeros(1)
    local out = func.functional_call(net,
      { { ["0.weight"] = weight }, { ["1.running_mean"] = mean } }, { B })
    assert.equal(before, net[1].weight)
    assert.is_not.equal(0, mean:item())
    assert.equal(0, net[2].running_mean:item())
    out[1]:sum():backward()
    assert.is_not_nil(weight.grad)
    assert.is_nil(before.grad)
    assert.matches("functional_call: Sequential has no tensor '0.wieght'; did you mean '0.weight'?",
      error_of(func.functional_call, net, { ["0.wieght"] = weight }, B), 1, true)
    assert.matches("'0.bias' of Sequential is not given, with strict",
      error_of(func.functional_call, net, { ["0.weight"] = weight }, B, { strict = true }))
    assert.equal(before, net[1].weight)
  end)

  it("takes a state_dict with what get_extra_state gave", function()
    local net = lt.nn.Sequential(lt.nn.Linear(2, 1))
    net[1].get_extra_state = function() return 7 end
    local state = net:state_dict()
    assert.equal(7, state["0._extra_state"])
    assert.equal(1, func.functional_call(net, state, lt.ones(3, 2)).shape[2])
  end)

  it("leaves a module its device and dtype", function()
    local Net = lt.Module:extend "Net"
    function Net:init() self.w = lt.parameter(lt.ones(2):to "f64") end
    function Net:forward(x) return x * self.w, self.device, self.dtype end
    local net = Net()
    local out, device, dtype = func.functional_call(net, { w = lt.zeros(2):to "f64" }, lt.ones(2))
    assert.same({ 0, 0 }, out:tolist())
    assert.equal(net.device .. " f64", device .. " " .. dtype)
  end)

  it("replaces tied tensors in all places", function()
    local net = nn.Sequential(nn.Linear(2, 2, false), nn.Linear(2, 2, false))
    net[2].weight = net[1].weight
    local two = lt.eye(2) * 2
    near({ 2 }, { 4, 4 }, func.functional_call(net, { ["0.weight"] = two }, lt.ones(2)))
    lt.allow_update(function() net[1].weight:copy_(lt.eye(2)) end)
    near({ 2 }, { 2, 2 }, func.functional_call(net, { ["0.weight"] = two }, lt.ones(2),
      { tie_weights = false }))
  end)

  it("stacks the tensors of modules, for vmap", function()
    local list = { nn.Linear(2, 3), nn.Linear(2, 3) }
    local params, buffers = func.stack_module_state(list)
    assert.same({ 2, 3, 2 }, params.weight.shape)
    assert.is_true(params.weight.requires_grad)
    assert.is_nil(next(buffers))
    local got = lt.vmap(function(p, x)
      return func.functional_call(list[1], p, x)
    end, { 1, false })(params, A)
    assert.is_true(got[2]:allclose(list[2](A)))
    assert.matches("modules 1 and 2 are not made alike", error_of(func.stack_module_state,
      { nn.Linear(2, 3), nn.Linear(3, 3) }))
    assert.matches("modules 1 and 2 are not made alike: 'bias' is in the first alone",
      error_of(func.stack_module_state, { nn.Linear(2, 3), nn.Linear(2, 3, { bias = false }) }))
    assert.matches("needs a list of modules", error_of(func.stack_module_state, {}))
  end)
end)

describe("lt.vmap", function()
  it("goes along any dims, of arguments and results", function()
    local got = lt.vmap(function(a, b) return a:outer(b) end, { 1, 2 }, 3)(B, B:reshape(2, 3))
    near({ 2, 2, 3 }, { 0.25, -0.44, -0.36, 0.1, -0.36, -1.17, 0.55, 0.22, 0.52, 0.22, 0.18, 1.69 },
      got)
    local sums, doubled = lt.vmap(function(a) return a:sum(), a * 2 end, -1, { 1, 2 })(B)
    near({ 2 }, { 1, 0 }, sums)
    near({ 3, 2 }, (B * 2):flatten():tolist(), doubled)
    assert.equal(func.vmap, lt.vmap)
  end)

  it("gives the gradient for each sample", function()
    local net = nn.Linear(2, 1)
    local params = { weight = lt.tensor { { 0.2, -0.5 } }, bias = lt.tensor { 0.1 } }
    local function loss(p, x, y)
      return (func.functional_call(net, p, x) - y):square():sum()
    end
    local targets = lt.tensor { { 1.0 }, { 2 }, { 3 } }
    local got = lt.vmap(func.grad(loss), { false, 1, 1 })(params, B, targets)
    near({ 3, 1, 2 }, { -1.35, -2.97, 1.664, -0.832, -3.726, 5.381999 }, got.weight)
    near({ 3, 1 }, { -2.7, -4.16, -4.14 }, got.bias)
  end)

  it("refuses random numbers, or draws them once or for each", function()
    local function noisy(a) return a + lt.rand(1) end
    assert.matches("vmap: the function draws random numbers: write randomness = 'different' or "
      .. "'same'", error_of(lt.vmap(noisy), lt.ones(3)), 1, true)
    local same = lt.vmap(noisy, { randomness = "same" })(lt.ones(3)):flatten():tolist()
    assert.equal(same[1], same[3])
    local different = lt.vmap(noisy, { randomness = "different" })(lt.ones(3)):flatten():tolist()
    assert.is_not.equal(different[1], different[3])
  end)

  it("names what is wrong", function()
    local function product(a, b) return a * b end
    assert.matches("vmap: arguments have batches of 2 and of 3 samples",
      error_of(lt.vmap(product), A, B))
    assert.matches("vmap: argument 2 is 3, which has no dims: write false for it in in_dims",
      error_of(lt.vmap(product), A, 3))
    assert.matches("vmap: in_dims: argument 1 is [2]: it has no dim 2",
      error_of(lt.vmap(product, 2), A, B), 1, true)
    assert.matches("vmap: the function must return tensors: got 'a'",
      error_of(lt.vmap(function() return "a" end), A))
  end)
end)

describe("names of torch.autograd that are not here", function()
  it("are answered with what to write", function()
    local x = lt.ones(1)
    for code, want in pairs {
      ["return lt.autograd.Variable"] = "write lt.tensor",
      ["return lt.functional_call"] = "write lt.func.functional_call",
      ["return lt.set_detect_anomaly"] = "write lt.detect_anomaly",
      ["return lt.nn.utils.rnn.pack_padded_sequence"] = "write y, state = layer%(x, state, "
        .. "{lengths = n}%): there are no packed sequences",
      ["return x.T"] = "write x:t%(%)",
    } do
      local chunk = assert(load(code, "=s", "t", { lt = lt, x = x, print = print }))
      assert.matches(want, error_of(chunk))
    end
  end)
end)
