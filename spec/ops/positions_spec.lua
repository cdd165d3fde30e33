-- spec/ops/positions_spec.lua: what is particular about parts of tensors at positions; values:
-- spec/parity/samples.jsonl.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local F64 <const> = { dtype = "f64" }
local function values(...) return (lt.arange(12, F64) * 0.7):sin():reshape { ... } end
local function input(...) return values(...):requires_grad_() end

describe("index_copy and index_fill", function()
  it("count from 0, and write x itself where their name ends in _", function()
    local x = lt.zeros(2, 3)
    assert.equal(x, x:index_copy_(2, lt.tensor { 2, 0 }, lt.tensor { { 1.0, 2 }, { 3, 4 } }))
    assert.same({ { 2, 0, 1 }, { 4, 0, 3 } }, x:tolist())
    x:index_fill_(1, lt.tensor { 0 }, 7)
    assert.same({ { 7, 7, 7 }, { 4, 0, 3 } }, x:tolist())
    assert.same({ { 9, 7, 9 }, { 9, 0, 9 } }, x:index_fill(-1, lt.tensor { 0, 2 }, 9):tolist())
  end)

  it("have gradients of every order, of a value that fills as well", function()
    local index <const> = lt.tensor { 0, 2 }
    assert.is_true(lt.gradgradcheck(function(x, y) return x:index_copy(2, index, y):square() end,
      { input(4, 3), (values(4, 3):narrow(2, 1, 2) * 2):detach():requires_grad_() }))
    assert.is_true(lt.gradgradcheck(function(x, v) return x:index_fill(2, index, v):square() end,
      { input(4, 3), lt.tensor(0.3, { dtype = "f64", requires_grad = true }) }))
    local v = lt.tensor(3.0, { requires_grad = true })
    lt.zeros(2, 3):index_fill(1, lt.tensor { 1, 1 }, v):sum():backward() -- a position counts once
    assert.equal(3, v.grad:item())
  end)

  it("report what does not fit", function()
    local x, index = lt.zeros(2, 3), lt.tensor { 0, 2 }
    assert.matches("index_copy: source must be %[2, 2%] f32: got %[2, 3%] f32; x is %[2, 3%]",
      error_of(function() x:index_copy(2, index, lt.ones(2, 3)) end))
    assert.matches("index_copy: the dim comes before the index; it is index_copy%(x, dim, index, "
      .. "source%)", error_of(function() x:index_copy(index, 2, lt.ones(2, 2)) end))
    assert.matches("index_fill_: the dim comes before the index; it is index_fill_%(x, dim, index, "
      .. "value%)", error_of(function() x:index_fill_(index, 2, 0) end))
    assert.matches("index: 3 is out of %-3%.%.2", error_of(function()
      x:index_fill(2, lt.tensor { 3 }, 1):tolist()
    end))
    assert.matches("index_fill: value must be a number or a tensor %[%]: got %[2%]",
      error_of(function() x:index_fill(2, index, lt.ones(2)) end))
  end)
end)

describe("index_put, put and take", function()
  it("replace elements, or add to them", function()
    local x, at = lt.zeros(2, 3), { lt.tensor { 0, 1 }, lt.tensor { 2, 2 } }
    assert.same({ { 0, 0, 5 }, { 0, 0, 6 } }, x:index_put(at, lt.tensor { 5.0, 6 }):tolist())
    x:index_put_({ lt.tensor { 1, 1 } }, lt.ones(2, 3), true)
    assert.same({ { 0, 0, 0 }, { 2, 2, 2 } }, x:tolist())
    x:put_(lt.tensor { 0, -1 }, lt.tensor { 8.0, 9 })
    assert.same({ { 8, 0, 0 }, { 2, 2, 9 } }, x:tolist())
    assert.same({ { 9, 8 } }, x:take(lt.tensor { { -1, 0 } }):tolist())
    assert.matches("put: index %[2%] and source %[3%] have not as many elements",
      error_of(function() x:put(lt.tensor { 0, 1 }, lt.ones(3)) end))
    assert.matches("index_put: indices must be a list of 1 to 2 tensors: got a tensor",
      error_of(function() x:index_put(lt.tensor { 0 }, lt.ones(3)) end))
  end)
end)

describe("parts that are replaced", function()
  it("have gradients of every order", function()
    local row, two = values(3, 4):narrow(1, 1, 1), values(4, 3):narrow(1, 1, 2)
    local function checks(f, y)
      assert.is_true(lt.gradgradcheck(f, { input(4, 3), (y * 2):detach():requires_grad_() }))
    end
    checks(function(x, y) return x:select_scatter(y, 2, 3):square() end, row:reshape { 4 })
    checks(function(x, y) return x:slice_scatter(y, 1, { from = 2, to = 3 }):square() end, two)
    checks(function(x, y) return x:diagonal_scatter(y, 1):square() end, two:select(2, 1))
  end)

  it("are as slice selects them", function()
    local y = lt.zeros(4):slice_scatter(lt.tensor { 1.0, 2 }, 1, { from = 1, to = 4, step = 2 })
    assert.same({ 1, 0, 2, 0 }, y:tolist())
    assert.matches("select_scatter: source must be %[3%]: got %[2%]", error_of(function()
      lt.zeros(4, 3):select_scatter(lt.ones(2), 1, 2)
    end))
    assert.same({ 0, 1, 1, 0 }, lt.zeros(4):slice_scatter(lt.ones(2), 1, 2, 3):tolist())
    assert.matches("slice_scatter: from must be an integer: got true", error_of(function()
      lt.zeros(4):slice_scatter(lt.ones(2), 1, true)
    end))
  end)
end)
