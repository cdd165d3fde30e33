-- spec/cuda/matmul_spec.lua: products of a GPU are the CPU's, whatever the shapes and strides.
local both = require "spec.cuda.both"
local lt = require "ltrain"

local BOUND <const> = { f32 = 1e-5, f16 = 2e-3, bf16 = 1.6e-2, f64 = 1e-13, i64 = 0, u8 = 0 }
local DTYPES <const> = { "f32", "f16", "bf16", "f64", "i64", "u8" }
-- M, K, N: single ones, no terms, above tiles of 64 and terms of 16, one row.
local SIZES <const> = { { 1, 1, 1 }, { 5, 0, 4 }, { 65, 17, 34 }, { 1, 70, 9 } }

local function make(dtype, ...)
  local x = lt.randn(...)
  if dtype == "u8" then return (x * 2 + 5):to("u8") end
  return (dtype == "i64" and x * 10 or x):to(dtype)
end

-- fn(a, b, bias) of tensors on the CPU and of the same ones on the GPU.
local function check(what, fn, ...)
  local here, there = { ... }, {}
  for k, t in ipairs(here) do there[k] = t:to("cuda") end
  local want = fn(table.unpack(here))
  both.close(fn(table.unpack(there)), want, BOUND[want.dtype], what)
end

local function each(fn)
  for _, dtype in ipairs(DTYPES) do
    for _, s in ipairs(SIZES) do
      local m, k, n = table.unpack(s)
      fn(("%s %d x %d x %d"):format(dtype, m, k, n), dtype, m, k, n)
    end
  end
end

local function turned(x) return x:transpose(x.ndim - 1, x.ndim) end

describe("matmul on cuda", function()
  both.it("multiplies matrices, transposed or not", function()
    each(function(what, dtype, m, k, n)
      local a, b = make(dtype, m, k), make(dtype, k, n)
      check(what, lt.matmul, a, b)
      check(what .. " tn", function(x, y) return lt.matmul(turned(x), y) end, make(dtype, k, m), b)
      check(what .. " nt", function(x, y) return lt.matmul(x, turned(y)) end, a, make(dtype, n, k))
      check(what .. " tt", function(x, y) return lt.matmul(turned(x), turned(y)) end,
        make(dtype, k, m), make(dtype, n, k))
    end)
  end)

  both.it("takes vectors for rows and columns", function()
    each(function(what, dtype, m, k, n)
      local v = make(dtype, k)
      check(what .. " right", lt.matmul, make(dtype, m, k), v)
      check(what .. " left", lt.matmul, v, make(dtype, k, n))
      check(what .. " both", lt.matmul, v, make(dtype, k))
    end)
  end)

  both.it("broadcasts stacks", function()
    each(function(what, dtype, m, k, n)
      check(what .. " one", lt.matmul, make(dtype, 2, 3, m, k), make(dtype, k, n))
      check(what .. " left one", lt.matmul, make(dtype, m, k), make(dtype, 3, k, n))
      check(what .. " across", lt.matmul, make(dtype, 2, 1, m, k), make(dtype, 3, k, n))
    end)
  end)

  both.it("takes heads, slices and rows that do not lie side by side", function()
    each(function(what, dtype, m, k, n)
      check(what .. " heads", function(x, y)
        return lt.matmul(x:transpose(2, 3), y:permute { 1, 3, 4, 2 })
      end, make(dtype, 2, m, 5, k), make(dtype, 2, n, 5, k))
      check(what .. " slice", function(x, y)
        return lt.matmul(x:narrow(1, 2, m):narrow(2, 2, k), y)
      end, make(dtype, m + 1, k + 1), make(dtype, k, n))
      check(what .. " steps", function(x, y) return lt.matmul(x:select(3, 2), y) end,
        make(dtype, m, k, 2), make(dtype, k, n))
      check(what .. " repeated", function(x, y) return lt.matmul(x:expand { 2, m, k }, y) end,
        make(dtype, 1, k), make(dtype, 2, k, n))
    end)
  end)

  both.it("promotes dtypes", function()
    for _, p in ipairs { { "f32", "f16" }, { "f16", "bf16" }, { "i64", "f16" }, { "f32", "f64" },
      { "u8", "i64" }, { "u8", "f32" } } do
      check(p[1] .. " " .. p[2], lt.matmul, make(p[1], 9, 40), make(p[2], 40, 20))
    end
  end)

  both.it("lets NaN and infinities through", function()
    local a = lt.randn(5, 70)
    a[2][3], a[3][4] = 0 / 0, 1 / 0
    check("nan", function(x) return lt.matmul(x, turned(x)) end, a)
  end)

  both.it("copies heads where that saves many calls", function()
    check("heads", function(x, y)
      return lt.matmul(x:transpose(2, 3), y:permute { 1, 3, 4, 2 })
    end, make("f16", 5, 3, 6, 2), make("f16", 5, 4, 6, 2))
  end)

  both.it("gives the same bits each time", function()
    local a, b = make("f32", 70, 200):to("cuda"), make("f32", 200, 30):to("cuda")
    both.same(lt.matmul(a, b), lt.matmul(a, b))
  end)
end)

describe("linear on cuda", function()
  both.it("adds the bias", function()
    each(function(what, dtype, m, k, n)
      local w, bias = make(dtype, n, k), make(dtype, n)
      check(what, lt.linear, make(dtype, m, k), w, bias)
      check(what .. " of a stack", lt.linear, make(dtype, 2, m, k), w, bias)
      check(what .. " without", lt.linear, make(dtype, m, k), w)
      check(what .. " of a vector", lt.linear, make(dtype, k), w, bias)
      check(what .. " to a number", lt.linear, make(dtype, m, k), make(dtype, k),
        make(dtype, 1):squeeze())
    end)
  end)

  both.it("has the CPU's gradients", function()
    for _, dtype in ipairs { "f32", "f16", "bf16", "f64" } do
      local x, w, bias = make(dtype, 6, 33, 20), make(dtype, 40, 20), make(dtype, 40)
      local function gradients(device)
        local t = {}
        for k, v in ipairs { x, w, bias } do t[k] = v:to(device):clone() end
        for _, v in ipairs(t) do v.requires_grad = true end
        lt.linear(t[1], t[2], t[3]):pow(2):mean():backward()
        return { t[1].grad, t[2].grad, t[3].grad }
      end
      local want, got = gradients "cpu", gradients "cuda"
      for k, g in ipairs(want) do both.close(got[k], g, BOUND[dtype], dtype .. " " .. k) end
    end
  end)
end)
