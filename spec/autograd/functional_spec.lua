-- spec/autograd/functional_spec.lua: lt.autograd.functional and lt.autograd.backward. Numbers are
-- those of torch.autograd.functional, of the same functions.
local error_of = require "spec.error_of"
local lt = require "ltrain"
local F = lt.autograd.functional

local A <const>, B <const> = lt.tensor { 0.3, -0.7 },
  lt.tensor { { 0.5, 1.1 }, { -0.4, 0.2 }, { 0.9, -1.3 } }
local V <const> = { lt.tensor { 1.0, 2.0 },
  lt.tensor { { 0.1, -0.2 }, { 0.3, 0.4 }, { -0.5, 0.6 } } }

local function two(a, b) return (b:matmul(a)):sin(), (a ^ 3):sum() * b:sum() end

local function number(a, b)
  local product = b:matmul(a)
  return (product:sin() * product):sum()
end

-- The shape, and the numbers of the tensor.
local function near(shape, want, got)
  assert.same(shape, got.shape)
  assert.is_false(got.requires_grad)
  for i, value in ipairs(got:flatten():tolist()) do assert.near(want[i], value, 5e-6) end
end

local HVP <const> = { { 1.685106, 3.797464 },
  { 0.005691, -4.717718, -0.6147004, -0.768514, 1.598272, 2.22512 } }
local A_BY_B <const> = { -0.8955125, -0.4436303, -0.7322546, 0.522463, 1.285217, 0.2073867,
  0.4182801, -2.061626, 0.1119563, -0.7695734, 0.1283823, 1.074539 }

describe("lt.autograd.functional", function()
  it("has jacobian, in lists by results and inputs", function()
    local got = F.jacobian(two, { A, B })
    near({ 3, 2 }, { 0.4069392, 0.8952664, -0.386556, 0.193278, 0.3428324, -0.4952023 }, got[1][1])
    near({ 3, 3, 2 }, { 0.2441636, -0.5697149, 0, 0, 0, 0, 0, 0, 0.289917, -0.676473, 0, 0, 0, 0, 0,
      0, 0.1142775, -0.2666474 }, got[1][2])
    near({ 2 }, { 0.27, 1.47 }, got[2][1])
    near({ 3, 2 }, { -0.316, -0.316, -0.316, -0.316, -0.316, -0.316 }, got[2][2])
    near({ 2, 2 }, { 0.6, 0, 0, -1.4 }, F.jacobian(function(a) return a ^ 2 end, A))
    near({ 2 }, { 1, 1 }, F.jacobian(function(a) return { a:sum(), a } end, A)[1])
    near({ 2 }, { 1, 1 }, F.jacobian(function(a) return a:sum() end, { A })[1])
  end)

  it("has hessian", function()
    local got = F.hessian(number, { A, B })
    near({ 2, 2 }, { 0.348789, 0.933005, 0.933005, 1.052008 }, got[1][1])
    near({ 2, 3, 2 }, A_BY_B, got[1][2])
    assert.same({ 3, 2, 2 }, got[2][1].shape)
    assert.same({ 3, 2, 3, 2 }, got[2][2].shape)
    near({ 2, 2 }, { 1.8, 0, 0, -4.2 }, F.hessian(function(a) return (a ^ 3):sum() end, A))
  end)

  it("has products of the Jacobian with vectors", function()
    local results, made = F.jvp(two, { A, B }, V)
    near({ 3 }, { -0.5810351, -0.2570806, 0.924606 }, results[1])
    near({ 3 }, { 2.335831, -0.1836141, -0.8646995 }, made[1])
    near({}, { 2.9888 }, made[2])
    results, made = F.vjp(two, { A, B }, { lt.tensor { 1, -2, 0.5 }, lt.tensor(3.0) })
    near({}, { -0.316 }, results[2])
    near({ 2 }, { 2.161468, 4.67111 }, made[1])
    near({ 3, 2 }, { -0.7038364, -1.517715, -1.527834, 0.4049461, -0.8908612, -1.081324 }, made[2])
    near({ 2 }, { 1, 1 }, select(2, F.vjp(function(a) return a:sum() end, A)))
  end)

  it("has products of the Hessian with vectors", function()
    for _, name in ipairs { "hvp", "vhp" } do
      local result, made = F[name](number, { A, B }, V)
      near({}, { 1.518118 }, result)
      near({ 2 }, HVP[1], made[1])
      near({ 3, 2 }, HVP[2], made[2])
    end
  end)

  it("gives results a history with create_graph", function()
    local x = A:clone():requires_grad_()
    local got = F.jacobian(function(a) return (two(a, B)) end, x, { create_graph = true })
    got:square():sum():backward()
    near({ 2 }, { -0.9342523, 3.828139 }, x.grad)
    local _, made = F.hvp(function(a) return (a ^ 4):sum() end, x, V[1], true)
    near({ 2 }, { 24 * 0.3, 24 * -0.7 * 2 }, lt.grad(made:sum(), x))
  end)

  it("has zeros for what does not depend on an input, or an error with strict", function()
    local function first(a, _) return a * 2 end
    near({ 2, 3, 2 }, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, F.jacobian(first, { A, B })[2])
    near({ 2 }, { 0, 0 }, F.jvp(function(a) return a:detach() end, A, A) * 0)
    assert.matches("jacobian: the function does not depend on input 2: it may not be with strict",
      error_of(F.jacobian, first, { A, B }, { strict = true }), 1, true)
    assert.matches("result 1 does not depend on the inputs", error_of(F.vjp, function(a)
      return a:detach()
    end, A, A, false, true))
    assert.matches("hessian: derivative 1 does not depend on the inputs: it may not be with strict",
      error_of(F.hessian, function(a) return a:sum() end, A, false, true), 1, true)
  end)

  it("names what is wrong", function()
    assert.matches("jacobian: inputs must be a tensor or a list of tensors: got 3",
      error_of(F.jacobian, two, 3))
    assert.matches("what the function returns must be a tensor or a list of tensors: got nil",
      error_of(F.jacobian, function() end, A))
    assert.matches("hessian: the function must return a tensor of one element: got",
      error_of(F.hessian, function(a) return a end, A))
    assert.matches("jvp: v must be a tensor [2]: got a tensor [3, 2]", error_of(F.jvp, function(a)
      return a
    end, A, B), 1, true)
    assert.matches("vjp: v is needed where there is more than one number",
      error_of(F.vjp, function(a) return a end, A))
  end)
end)

describe("lt.autograd.backward", function()
  it("adds the gradients of several tensors", function()
    local a, b = lt.tensor({ 1.0, 2.0 }, { requires_grad = true }),
      lt.tensor({ 3.0, 4.0 }, { requires_grad = true })
    lt.autograd.backward({ (a * b):sum(), a ^ 2 }, { false, lt.tensor { 1.0, 10.0 } })
    near({ 2 }, { 5, 44 }, a.grad)
    near({ 2 }, { 1, 2 }, b.grad)
    lt.autograd.backward((a * b):sum(), { inputs = { b } })
    near({ 2 }, { 5, 44 }, a.grad)
    near({ 2 }, { 2, 4 }, b.grad)
    assert.matches("backward: tensor 1 is %[2%]: write its gradient in grad_tensors",
      error_of(lt.autograd.backward, a * 2))
    assert.matches("backward: tensor 1 must be a tensor: got 3",
      error_of(lt.autograd.backward, { 3 }))
  end)
end)
