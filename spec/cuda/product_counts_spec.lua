-- spec/cuda/product_counts_spec.lua: products on a GPU are one call of cuBLASLt, without copies:
-- what the fake runtime counts.
local both = require "spec.cuda.both"
local counts = require "spec.cuda.counts"
local lt = require "ltrain"

local function case(name, fn)
  if counts then return both.it(name, fn) end
  pending(name .. " (only the fake runtime counts)")
end

local function launches(fn)
  counts()
  fn()
  local c = counts()
  assert.equal(0, c.copies)
  assert.equal(0, c.waits)
  return c.launches
end

local function make(dtype, ...) return lt.randn(...):to(dtype):to "cuda" end

local function turned(x) return x:transpose(x.ndim - 1, x.ndim) end

describe("a product on cuda", function()
  for _, dtype in ipairs { "f32", "f16", "bf16" } do
    local function once(what, fn, ...)
      local t = { ... }
      local n = launches(function() return fn(table.unpack(t)) end)
      assert.equal(1, n, ("%s %s: %d launches"):format(dtype, what, n))
    end

    case("of " .. dtype .. " is one launch, transposed, sliced or stacked", function()
      local a, b = make(dtype, 8, 16), make(dtype, 16, 24)
      once("plain", lt.matmul, a, b)
      once("tn", function(x, y) return turned(x):matmul(y) end, make(dtype, 16, 8), b)
      once("nt", function(x, y) return x:matmul(turned(y)) end, a, make(dtype, 24, 16))
      once("tt", function(x, y) return turned(x):matmul(turned(y)) end, make(dtype, 16, 8),
        make(dtype, 24, 16))
      once("columns of a wider one", function(x, y) return x:narrow(2, 9, 16):matmul(y) end,
        make(dtype, 8, 48), b)
      once("stack", lt.matmul, make(dtype, 3, 8, 16), make(dtype, 3, 16, 24))
      once("stack, turned", function(x, y) return turned(x):matmul(turned(y)) end,
        make(dtype, 3, 16, 8), make(dtype, 3, 24, 16))
      once("stack, one matrix", lt.matmul, make(dtype, 3, 8, 16), b)
      once("one matrix, stack", lt.matmul, a, make(dtype, 3, 16, 24))
      once("repeated", function(x, y) return x:expand { 3, 8, 16 }:matmul(y) end,
        make(dtype, 1, 8, 16), make(dtype, 3, 16, 24))
      once("heads of one sequence", function(x, y)
        return x:transpose(1, 2):matmul(y:permute { 2, 3, 1 })
      end, make(dtype, 8, 3, 16), make(dtype, 24, 3, 16))
    end)

    case("of " .. dtype .. " with a bias is one launch", function()
      local w, bias = make(dtype, 24, 16), make(dtype, 24)
      once("matrix", lt.linear, make(dtype, 8, 16), w, bias)
      once("stack", lt.linear, make(dtype, 3, 8, 16), w, bias)
      once("vector", lt.linear, make(dtype, 16), w, bias)
      once("a sequence's last dim apart", function(x) return lt.linear(x, w, bias) end,
        make(dtype, 3, 8, 48):narrow(3, 1, 16))
    end)
  end

  case("and its gradients are three, and a sum for the bias", function()
    local x = make("f32", 3, 8, 16):requires_grad_()
    local w, bias = make("f32", 24, 16):requires_grad_(), make("f32", 24):requires_grad_()
    local g = make("f32", 3, 8, 24)
    local y = lt.linear(x, w, bias)
    local n = launches(function() lt.grad(y, { x, w, bias }, { grad_outputs = g }) end)
    assert.is_true(n <= 4, n .. " launches")
  end)
end)
