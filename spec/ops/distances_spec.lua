-- spec/ops/distances_spec.lua: norms of rows and of their differences.
local error_of = require "spec.error_of"
local lt = require "ltrain"

describe("renorm", function()
  it("scales down what has a larger norm", function()
    local x = lt.tensor({ { 3.0, 4 }, { 0.3, 0.4 } }, { dtype = "f64" })
    local y = x:renorm(2, 1, 1)
    -- torch.renorm(x, 2, 0, 1)
    local want = lt.tensor({ { 0.6, 0.8 }, { 0.3, 0.4 } }, { dtype = "f64" })
    assert.is_true((y - want):abs():amax():item() < 1e-7)
    assert.same(y:tolist(), x:renorm { p = 2, dim = -2, maxnorm = 1 }:tolist())
    assert.is_true(lt.gradgradcheck(function(z) return z:renorm(2, 1, 1) end,
      x:detach():requires_grad_()))
    assert.matches("renorm: x must have 2 dims or more: got %[2%]",
      error_of(lt.renorm, lt.ones(2), 2, 1, 1))
  end)
end)

describe("pdist", function()
  it("has the distance of each two rows", function()
    assert.same({ 5, 0, 5 }, lt.tensor { { 0.0, 0 }, { 3, 4 }, { 0, 0 } }:pdist():tolist())
    assert.same({ 7, 0, 7 }, lt.tensor { { 0.0, 0 }, { 3, 4 }, { 0, 0 } }:pdist(1):tolist())
    assert.matches("pdist: x must be %[N, D%]: got %[2%]", error_of(lt.pdist, lt.ones(2)))
  end)
end)
