-- spec/autograd/function_spec.lua: lt.Function: functions with a derivative of their own.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local function leaf(values) return lt.tensor(values, { dtype = "f64", requires_grad = true }) end

local exp = lt.Function { name = "exp",
  forward = function(ctx, x)
    local y = x:exp()
    ctx:save_for_backward(y)
    return y
  end,
  backward = function(ctx, grad)
    local y = ctx:saved_tensors()
    return grad * y
  end,
}

local product = lt.Function { name = "product",
  forward = function(ctx, a, k, b)
    ctx:save(a, nil, b)
    ctx.k = k
    return a * b * k, a + b
  end,
  backward = function(ctx, grad, sum)
    local a, hole, b = ctx:saved_tensors()
    assert(hole == nil)
    return grad * b * ctx.k + sum, nil, grad * a * ctx.k + sum
  end,
}

describe("lt.Function", function()
  it("has the derivatives that its backward gives, of any order", function()
    local x = leaf { 0.3, -0.7, 1.1 }
    assert.is_true(lt.gradcheck(exp, x))
    assert.is_true(lt.gradgradcheck(exp, x))
    exp(x):sum():backward()
    assert.near(0, (x.grad - x:detach():exp()):abs():amax():item(), 1e-15)
  end)

  it("takes arguments that are not tensors, and gives several results", function()
    local a, b = leaf { 1.0, -2.0 }, leaf { 0.5, 3.0 }
    assert.is_true(lt.gradcheck(function(...) return product(..., 3, b) end, a))
    local function f(p, q) return product(p, 3, q) end
    assert.is_true(lt.gradcheck(f, { a, b }))
    assert.is_true(lt.gradgradcheck(f, { a, b }))
    local only_second = lt.grad(select(2, f(a, b)):sum(), a)
    assert.same({ 1.0, 1.0 }, only_second:tolist()) -- the first result's gradient is zeros
  end)

  it("says which gradients are wanted", function()
    local seen
    local f = lt.Function {
      forward = function(ctx, a, n, b) seen = ctx.needs_input_grad return a * n + b end,
      backward = function(_, grad) return grad * 2, nil, nil end,
    }
    local x, y = leaf { 1.0 }, lt.ones(1, { dtype = "f64" })
    local z = f(x, 2, y)
    assert.same({ true, false, false }, seen)
    assert.same({ 2.0 }, lt.grad(z, x):tolist())
    assert.is_false(f(y, 2, y).requires_grad)
    assert.is_false(lt.no_grad(f, x, 2, y).requires_grad)
  end)

  it("gives results without a gradient where they are marked", function()
    local top = lt.Function {
      forward = function(ctx, x)
        local y, i = x:max { dim = 1 }
        local share = y / x:sum()
        ctx:mark_non_differentiable(share)
        ctx:save(i)
        ctx.n = x.shape[1]
        return y, i, share
      end,
      backward = function(ctx, grad, ids, share)
        assert(ids == nil and share == nil)
        return lt.one_hot(ctx:saved_tensors(), { num_classes = ctx.n }):to(grad.dtype) * grad
      end,
    }
    local y, i, share = top(leaf { 1.0, 5.0, 2.0 })
    assert.same({ true, false, false }, { y.requires_grad, i.requires_grad, share.requires_grad })
    local x = leaf { 1.0, 5.0, 2.0 }
    assert.same({ 0.0, 1.0, 0.0 }, lt.grad(top(x), x):tolist())
  end)

  it("may return an argument", function()
    local double = lt.Function { forward = function(_, x) return x end,
      backward = function(_, grad) return grad * 2 end }
    local x = leaf { 3.0 }
    local y = double(x)
    assert.is_false(y == x)
    assert.same({ 2.0 }, lt.grad(y, x):tolist())
    assert.is_true(x.is_leaf)
  end)

  it("refuses a second derivative where it is once_differentiable", function()
    local cube = lt.Function { name = "cube", once_differentiable = true,
      forward = function(ctx, x) ctx:save(x) return x * x * x end,
      backward = function(ctx, grad) return grad * ctx:saved_tensors() ^ 2 * 3 end }
    local x = leaf { 2.0 }
    assert.same({ 12.0 }, lt.grad(cube(x), x):tolist())
    local g = lt.grad(cube(x), x, { create_graph = true })
    assert.same({ 12.0 }, g:tolist())
    assert.matches("function_spec.lua:%d+: cube: its backward is once_differentiable: .* "
      .. "%(called at .*function_spec.lua:%d+%)", error_of(function() g:sum():backward() end))
    assert.matches("once_differentiable", error_of(lt.grad, g, x))
  end)

  it("names a wrong gradient, with the line of the call", function()
    local function wrong(backward)
      local f = lt.Function { name = "mine", forward = function(_, x, k) return x * k end,
        backward = backward }
      local x = leaf { 1.0, 2.0 }
      return error_of(function() f(x, 2):sum():backward() end)
    end
    local at = " %(called at spec/autograd/function_spec.lua:%d+%)$"
    assert.matches("mine: backward returned a tensor %[%] as gradient of argument 1, a tensor "
      .. "%[2%]" .. at, wrong(function(_, g) return g:sum() end))
    assert.matches("mine: backward returned 3 as gradient of argument 1",
      wrong(function() return 3 end))
    assert.matches("mine: backward returned 3 gradients, forward had 2 arguments" .. at,
      wrong(function(_, g) return g, nil, g end))
    assert.matches("function_spec.lua:%d+: out of paper", wrong(function()
      error "out of paper"
    end))
    assert.matches("save_for_backward: needs tensors: argument 2 is 'x'", error_of(lt.Function {
      forward = function(ctx, x) ctx:save(x, "x") end, backward = print }, leaf { 1.0 }))
    assert.matches("lt.Function: option 'backward' is required",
      error_of(lt.Function, { forward = print }))
  end)

  it("reports a saved value that was written in place", function()
    local x = leaf { 1.0 }
    local y = exp(x * 1)
    lt.no_grad(function() y:add_(1) end)
    assert.matches("backward of exp .*function_spec.lua:%d+.*was written in place since by add",
      error_of(function() y:sum():backward() end))
    y = exp(x)
    y:sum():backward()
    assert.matches("exp: it was freed by an earlier backward; pass {retain_graph = true}",
      error_of(function() y:sum():backward() end))
  end)

  it("leaves nothing behind, with a backward and without", function()
    local x = leaf { 1.0, 2.0 }
    local function held()
      collectgarbage()
      collectgarbage()
      exp(x) -- the next call lets go of what died since
      collectgarbage()
      collectgarbage()
      return require("ltrain.c").runtime.memory().live_bytes
    end
    local function once()
      exp(exp(x))
      lt.grad(exp(exp(x)):sum(), x, { create_graph = true })
    end
    once()
    local before = held()
    for _ = 1, 30 do once() end
    assert.equal(before, held())
  end)
end)
