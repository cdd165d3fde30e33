-- spec/autograd/gradcheck_spec.lua: lt.gradcheck, lt.gradgradcheck.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local function leaf(values) return lt.tensor(values, { dtype = "f64", requires_grad = true }) end

-- The gradient of x * |x| and the like, but wrong by a factor.
local function off(factor, order)
  return lt.Function { forward = function(ctx, x) ctx:save(x) return x * x end,
    backward = function(ctx, grad)
      local x = ctx:saved_tensors()
      if order == 1 then return grad * x * 2 * factor end
      return grad * (x * factor + x:detach() * (2 - factor)) -- right itself, its derivative is not
    end }
end

describe("lt.gradcheck", function()
  it("is true of gradients that are right", function()
    local x, w = leaf { { 0.4, -1.2 }, { 0.7, 0.1 } }, leaf { { 1.5, -0.3 } }
    assert.is_true(lt.gradcheck(function(a, b) return a:matmul(b:t()), a:sin() end, { x, w }))
    assert.is_true(lt.gradcheck(lt.sum, x))
    assert.is_true(lt.gradcheck(lt.floor, x)) -- a constant, as far as it can be seen
  end)

  it("names the first element that is wrong", function()
    local message = error_of(function()
      local ok = lt.gradcheck(off(1.5, 1), leaf { 0.0, 2.0 })
      return ok
    end)
    assert.matches("^spec/autograd/gradcheck_spec.lua:%d+: gradcheck: the gradient of result 1 by "
      .. "input 1 is wrong: of element 2 by element 2 it is 6, differences give 4", message)
    local ok, text = lt.gradcheck(off(1.5, 1), leaf { 2.0 }, { raise_exception = false })
    assert.is_false(ok)
    assert.matches("it is 6, differences give 4", text)
    assert.is_true(lt.gradcheck(off(1.5, 1), leaf { 2.0 }, { rtol = 0.6 }))
  end)

  it("is not true of a gradient that is nan", function()
    assert.is_false((lt.gradcheck(off(0 / 0, 1), leaf { 2.0 }, { raise_exception = false })))
  end)

  it("refuses what it cannot check", function()
    assert.matches("gradcheck: input 1 must be f64 for finite differences: it is f32",
      error_of(lt.gradcheck, lt.sin, lt.ones(1):requires_grad_()))
    assert.matches("gradcheck: no input requires grad", error_of(lt.gradcheck, lt.sin, lt.ones(1)))
    assert.matches("gradcheck: inputs must be a tensor or a list: got 3",
      error_of(lt.gradcheck, lt.sin, 3))
    assert.matches("gradcheck: the function returned no tensor of floats",
      error_of(lt.gradcheck, function() return 3 end, leaf { 1.0 }))
    assert.matches("gradcheck: unknown option 'ato'; did you mean 'atol'",
      error_of(lt.gradcheck, lt.sin, leaf { 1.0 }, { ato = 1 }))
  end)
end)

describe("lt.gradgradcheck", function()
  it("is true of second derivatives that are right", function()
    local x, w = leaf { { 0.4, -1.2 }, { 0.7, 0.1 } }, leaf { { 1.5, -0.3 } }
    assert.is_true(lt.gradgradcheck(function(a, b) return a:matmul(b:t()):tanh(), a:exp() end,
      { x, w }))
    assert.is_true(lt.gradgradcheck(function(a) return a * 3 end, x)) -- linear
  end)

  it("finds a gradient whose derivative is wrong", function()
    local f, x = off(0.5, 2), leaf { 2.0 }
    assert.is_true(lt.gradcheck(f, x))
    assert.matches("gradgradcheck: the gradient of result 1 by input 1 is wrong",
      error_of(lt.gradgradcheck, f, x))
  end)
end)
