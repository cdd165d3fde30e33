-- spec/autograd/deferred_spec.lua: a backward that leaves the gradients of parameters for later, as
-- schedules of pipelines want it.
local c = require "ltrain.c"
local lt = require "ltrain"

local nn = lt.nn

-- The gradients of a list of tensors, taken away.
local function take_gradients(list)
  local found = {}
  for i, tensor in ipairs(list) do
    found[i] = tensor.grad or false
    tensor.grad = nil
  end
  return found
end

local function assert_equal(wanted, got)
  assert.equal(#wanted, #got)
  for i, tensor in ipairs(wanted) do
    assert.equal(tensor and lt.hash(tensor), got[i] and lt.hash(got[i]), i)
  end
end

-- The gradients of `parameters` and `x` by loss_of(x) are the same in two parts, bit by bit.
local function check(parameters, x, loss_of)
  x.requires_grad = true
  loss_of(x):backward()
  local wanted, wanted_x = take_gradients(parameters), take_gradients { x }
  local deferred = c.runtime.backward_of_inputs(loss_of(x))
  assert_equal(wanted_x, take_gradients { x })
  for i, parameter in ipairs(parameters) do assert.is_nil(parameter.grad, i) end
  deferred:run()
  assert_equal(wanted, take_gradients(parameters))
end

describe("runtime.backward_of_inputs", function()
  it("leaves gradients of parameters to run()", function()
    lt.seed(1)
    local net = nn.Sequential(nn.Linear(5, 7), nn.LayerNorm(7), nn.Tanh(), nn.Conv1d(1, 2, 1),
      nn.Linear(7, 3))
    check(net:parameters(), lt.randn(4, 1, 5), function(x) return net(x):square():mean() end)
  end)

  it("knows parameters that are transposed, cast, or used several times", function()
    lt.seed(1)
    local w, b = lt.parameter(lt.randn(5, 5)), lt.parameter(lt.randn(5))
    check({ w, b }, lt.randn(3, 5), function(x)
      local h = x:matmul(w:t()):tanh():matmul(w) + b
      return (h * b:to "f64" + w:sum()):square():sum()
    end)
  end)

  it("begins with a gradient", function()
    lt.seed(1)
    local layer, x = nn.Linear(3, 2), lt.randn(4, 3)
    x.requires_grad = true
    local y, grad = layer(x), lt.randn(4, 2)
    y:backward { gradient = grad }
    local wanted = take_gradients { layer.weight, layer.bias, x }
    c.runtime.backward_of_inputs(layer(x), grad):run()
    assert_equal(wanted, take_gradients { layer.weight, layer.bias, x })
  end)

  it("adds to gradients that are there, and to those of functions and hooks at once", function()
    local w, v = lt.parameter(lt.ones(2)), lt.parameter(lt.ones(2))
    local twice = lt.Function {
      forward = function(_, x) return x * 2 end,
      backward = function(_, grad) return grad * 2 end,
    }
    local seen = 0
    v:register_hook(function() seen = seen + 1 end)
    local deferred = c.runtime.backward_of_inputs((twice(w) + w * 3 + v):sum())
    assert.same({ 2.0, 2.0 }, w.grad:tolist())
    assert.same({ 1.0, 1.0 }, v.grad:tolist())
    assert.equal(1, seen)
    deferred:run()
    assert.same({ 5.0, 5.0 }, w.grad:tolist())
    deferred:run()
    assert.same({ 5.0, 5.0 }, w.grad:tolist())
  end)

  it("reports a value that was written before run()", function()
    local w, x = lt.parameter(lt.ones(2)), lt.ones(2)
    local deferred = c.runtime.backward_of_inputs((w * x):sum())
    x:mul_(2)
    assert.has_error(function() deferred:run() end)
  end)

  it("frees what is never run", function()
    local w = lt.parameter(lt.ones(2))
    for _ = 1, 20 do c.runtime.backward_of_inputs((w * w):sum()) end
    collectgarbage()
    assert.is_nil(w.grad)
  end)
end)
