-- spec/ops/product_pieces_spec.lua: large thin products of halves, which the CPU makes in pieces.
local lt = require "ltrain"

local ROUNDING <const> = { bf16 = 2 ^ -8, f16 = 2 ^ -11 }

-- Products in `dtype` against those of the same numbers in f64, rounded once.
local function check(what, dtype, fn, ...)
  local own, exact = {}, {}
  for k, t in ipairs { ... } do own[k] = t:to(dtype) exact[k] = own[k]:to "f64" end
  local got, want = fn(table.unpack(own)), fn(table.unpack(exact))
  assert.equal(dtype, got.dtype, what)
  local off = (got:to "f64" - want):abs() - want:abs() * ROUNDING[dtype]
  assert.is_true(off:max():item() <= 1e-3, ("%s of %s: off by %g"):format(what, dtype,
    off:max():item()))
end

local function turned(x) return x:transpose(1, 2) end

describe("a large thin product of halves", function()
  for _, dtype in ipairs { "bf16", "f16" } do
    it("of " .. dtype .. " is what it is in f64", function()
      local x, w, b = lt.randn(9, 700), lt.randn(900, 700), lt.randn(900)
      check("columns", dtype, lt.linear, x, w, b)
      check("columns of one row", dtype, lt.linear, lt.randn(700), w, b)
      check("terms on the right", dtype, lt.matmul, lt.randn(9, 900), w)
      check("terms on the left", dtype, function(a, y) return turned(a):matmul(y) end,
        lt.randn(900, 700), lt.randn(900, 5))
      check("rows on the left", dtype, lt.matmul, w, lt.randn(700, 5))
      check("rows of a large result", dtype, function(g, y) return turned(g):matmul(y) end,
        lt.randn(9, 700), lt.randn(9, 500))
      check("a stack of rows", dtype, lt.linear, lt.randn(2, 3, 700), w, b)
      check("a vector on the right", dtype, lt.matmul, w, lt.randn(700))
      check("a slice", dtype, function(a, y) return a:matmul(turned(y:narrow(2, 2, 600))) end,
        lt.randn(9, 600), w)
    end)
  end

  it("has the same bits each time", function()
    local x, w = lt.randn(9, 700):to "bf16", lt.randn(900, 700):to "bf16"
    assert.same(lt.linear(x, w):tolist(), lt.linear(x, w):tolist())
  end)
end)
