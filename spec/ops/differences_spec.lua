-- spec/ops/differences_spec.lua: lt.gradient and lt.combinations, against what PyTorch gives.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local function f64(list) return lt.tensor(list, { dtype = "f64" }) end

local function near(wanted, got)
  assert(lt.allclose(f64(wanted), got, { rtol = 1e-12, atol = 1e-12 }), tostring(got))
end

describe("lt.gradient", function()
  local x <const> = f64 { 1, 4, 9, 16, 30 }
  local m <const> = f64 { { 1, 2, 4 }, { 3, 8, 5 }, { 0, 1, 7 } }

  it("is that of PyTorch, along each dim", function()
    near({ 3, 4, 6, 10.5, 14 }, lt.gradient(x)[1])
    local both <const> = m:gradient()
    near({ { 2, 6, 1 }, { -0.5, -0.5, 1.5 }, { -3, -7, 2 } }, both[1])
    near({ { 1, 1.5, 2 }, { 5, 1, -3 }, { 1, 3.5, 6 } }, both[2])
    assert.equal(1, #lt.gradient(m, { dim = 2 }))
    near({ { 1, 1.5, 2 }, { 5, 1, -3 }, { 1, 3.5, 6 } }, lt.gradient(m, { dims = { 2 } })[1])
  end)

  it("takes distances, one or for each dim, and coordinates", function()
    near({ 1, 2, 3, 5.25, 8.75 }, lt.gradient(x, { spacing = 2, edge_order = 2 })[1])
    near({ { 2, 3, 4 }, { 10, 2, -6 }, { 2, 7, 12 } }, lt.gradient(m, { spacing = { 2, 0.5 } })[2])
    near({ { 2 / 3, 2, 1 / 3 }, { -1 / 6, -1 / 6, 0.5 }, { -1, -7 / 3, 2 / 3 } },
      lt.gradient(m, { spacing = 3, dim = { 2, 1 } })[2])
    local at <const> = f64 { 0, 1, 3, 4, 7 }
    near({ 3, 17 / 6, 5.5, 77 / 12, 14 / 3 }, lt.gradient(x, { spacing = at })[1])
    near({ 19 / 6, 17 / 6, 5.5, 77 / 12, 35 / 12 },
      lt.gradient(x, { spacing = { at }, edge_order = 2 })[1])
  end)

  it("has the derivatives that finite differences have", function()
    local y <const> = lt.randn(4, { dtype = "f64", requires_grad = true })
    local at <const> = f64 { 0, 1, 3, 4 }
    assert(lt.gradgradcheck(function(t)
      return t:gradient { spacing = at, edge_order = 2 }[1]
    end, { y }))
  end)

  it("names what does not fit", function()
    assert.matches("gradient: needs one spacing for each of 1 dims: got 2",
      error_of(lt.gradient, m, { spacing = { 1, 2 }, dim = 1 }))
    assert.matches("gradient: dim %-1 is given twice",
      error_of(lt.gradient, m, { dim = { 2, -1 } }))
    assert.matches("gradient: dim 1 has 1 elements; edge_order = 1 needs 2",
      error_of(lt.gradient, lt.ones(1)))
    assert.matches("gradient: spacing must be coordinates %[3%] of dim 1: got %[5%]",
      error_of(lt.gradient, m, { spacing = { x, 1 } }))
  end)
end)

describe("lt.combinations", function()
  it("is that of PyTorch", function()
    local x <const> = lt.tensor { 1, 2, 3 }
    assert.same({ { 1, 2 }, { 1, 3 }, { 2, 3 } }, lt.combinations(x):tolist())
    assert.same({ { 1, 2, 3 } }, x:combinations(3):tolist())
    assert.same({ { 1, 1 }, { 1, 2 }, { 1, 3 }, { 2, 2 }, { 2, 3 }, { 3, 3 } },
      lt.combinations(x, 2, true):tolist())
    assert.same({ 0 }, lt.combinations(x, 0).shape)
    assert.same({ 0, 4 }, lt.combinations(x, { r = 4 }).shape)
    assert.matches("combinations: needs a vector: got %[2, 2%]",
      error_of(lt.combinations, lt.ones(2, 2)))
  end)
end)

describe("lt.matrix_exp", function()
  it("is linalg.matrix_exp, of a method too", function()
    local a <const> = f64 { { 0, -1 }, { 1, 0 } }
    near({ { math.cos(1), -math.sin(1) }, { math.sin(1), math.cos(1) } }, lt.matrix_exp(a))
    assert(lt.equal(lt.matrix_exp(a), a:matrix_exp()))
  end)
end)
