-- spec/cuda/gelu_spec.lua: gelu of f16 and bf16 on GPUs, which has a formula of its own
-- (runtime/cuda/gelu_half.h), for all values of both dtypes.
local both = require "spec.cuda.both"
local lt = require "ltrain"

-- Bits after the point, and the exponent of the smallest normal number.
local DTYPES <const> = { bf16 = { 7, -126 }, f16 = { 10, -14 } }

-- All finite values, as f64. Beyond 1e18 the square of x is infinite in f32.
local function all_of(dtype)
  local digits <const>, smallest <const> = table.unpack(DTYPES[dtype])
  local values, one <const> = {}, 1 << digits
  for bits = 0, 32767 do
    local exponent, fraction = bits >> digits, bits & one - 1
    local x = exponent == 0 and fraction / one * 2.0 ^ smallest
      or (1 + fraction / one) * 2.0 ^ (exponent - 1 + smallest)
    if x < 1e18 and exponent < 32768 // one - 1 then
      values[#values + 1], values[#values + 2] = x, -x
    end
  end
  return lt.tensor(values, { dtype = "f64" })
end

-- Raises where gelu(x) differs from the exact value by more than `places` of its last places: of
-- those of 2^-60 below -9, where the value is smaller than that.
local function close(got, x, exact, dtype, places)
  local digits <const>, smallest <const> = table.unpack(DTYPES[dtype])
  local least = lt.where(x:lt(-9), 2.0 ^ math.max(smallest, -60), 2.0 ^ smallest)
  local place = exact:abs():maximum(least):log2():floor():exp2() * 2.0 ^ -digits
  local off = (got:to("cpu"):to("f64") - exact):abs() / place
  assert.is_true(off:isfinite():all():item() and off:amax():item() <= places,
    ("%s: off by %g places at %g"):format(dtype, off:amax():item(), x[off:argmax():item()]:item()))
end

local function normal(x) return x:ndtr() end
local function density(x) return (x * x * -0.5):exp() / math.sqrt(2 * math.pi) end

describe("gelu of 16 bits on cuda", function()
  for dtype in pairs(DTYPES) do
    both.it("is within a place of the exact value: " .. dtype, function()
      local x <const> = all_of(dtype)
      local y = x:to(dtype):to("cuda"):gelu()
      close(y, x, x * normal(x), dtype, dtype == "bf16" and 0.52 or 0.65)
    end)

    both.it("has derivatives that are: " .. dtype, function()
      local exact <const> = all_of(dtype)
      local x <const> = exact:to(dtype):to("cuda"):requires_grad_()
      x:gelu():sum():backward()
      local want = normal(exact) + exact * density(exact)
      -- Near its zero at -0.75 both terms cancel: places of what is subtracted.
      local terms = normal(exact):maximum((exact * density(exact)):abs())
      local off = (x.grad:to("cpu"):to("f64") - want):abs() / (terms + 2.0 ^ -14)
      assert.is_true(off:amax():item() <= 2.0 ^ -DTYPES[dtype][1])
    end)

    both.it("is the same of a view and of a copy: " .. dtype, function()
      local x <const> = lt.randn(33, 17):to(dtype):to "cuda"
      both.same(x:t():gelu(), x:t():contiguous():gelu(), dtype)
    end)
  end

  both.it("has the CPU's infinities and NaN", function()
    both.same_on_both("odd values", function(device)
      local x = lt.tensor { 0 / 0, 1 / 0, -1 / 0, -0.0, 0.0, 3e38, -3e38 }
      return x:to("bf16"):to(device):gelu()
    end)
  end)
end)
