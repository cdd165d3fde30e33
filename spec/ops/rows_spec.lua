-- spec/ops/rows_spec.lua: every elementwise row, derived from lt.ops().
--
-- A row's value is held against an independent formula in doubles (the oracle table below: a row
-- without one fails), its gradient against central finite differences in f64 inside the row's own
-- domain, low precision against f32, strided against contiguous input, and odd shapes.
local error_of = require "spec.error_of"
local lt = require "ltrain"

local function sign(x) return x > 0 and 1 or x < 0 and -1 or x end
local function round(x) -- halves to even
  local f = math.floor(x)
  local d = x - f
  if d > 0.5 or (d == 0.5 and f % 2 == 1) then return f + 1 end
  return f
end
local function erf(x) -- Taylor series, converges to 1e-15 for |x| <= 4
  local term, sum = x, x
  for n = 1, 120 do
    term = -term * x * x / n
    sum = sum + term / (2 * n + 1)
  end
  return sum * 2 / math.sqrt(math.pi)
end
local function tanh(x)
  local e = math.exp(2 * x)
  return (e - 1) / (e + 1)
end

local function lgamma(x) -- Stirling's series, far enough out
  local shift = 1
  while x < 7 do shift, x = shift * x, x + 1 end
  return (x - 0.5) * math.log(x) - x + 0.5 * math.log(2 * math.pi) + 1 / (12 * x)
    - 1 / (360 * x ^ 3) + 1 / (1260 * x ^ 5) - 1 / (1680 * x ^ 7) + 1 / (1188 * x ^ 9)
    - 691 / (360360 * x ^ 11) + 1 / (156 * x ^ 13) - math.log(shift)
end
local function digamma(x)
  local sum = 0
  while x < 20 do sum, x = sum - 1 / x, x + 1 end
  return sum + math.log(x) - 1 / (2 * x) - 1 / (12 * x ^ 2) + 1 / (120 * x ^ 4)
    - 1 / (252 * x ^ 6) + 1 / (240 * x ^ 8)
end
local function erfinv(y) -- by Newton's method
  local x = 0
  for _ = 1, 9 do x = x - (erf(x) - y) * math.sqrt(math.pi) / 2 * math.exp(x * x) end
  return x
end
-- The mean of f over n equal steps: of periodic functions exact.
local function mean(f, n)
  local sum = 0
  for k = 1, n do sum = sum + f(2 * math.pi * k / n) end
  return sum / n
end
local function bessel_i(n)
  return function(x)
    return mean(function(t) return math.exp(x * math.cos(t)) * math.cos(n * t) end, 24)
  end
end
local function bessel_j(n)
  return function(x) return mean(function(t) return math.cos(n * t - x * math.sin(t)) end, 24) end
end
local j0 <const>, j1 <const> = bessel_j(0), bessel_j(1)
local i0 <const>, i1 <const> = bessel_i(0), bessel_i(1)
local function y0(x) -- by its series
  local sum, term, harmonic = 0, 1, 0
  for k = 1, 30 do
    term, harmonic = -term * x * x / (4 * k * k), harmonic + 1 / k
    sum = sum - harmonic * term
  end
  return 2 / math.pi * ((math.log(x / 2) + 0.57721566490153286) * j0(x) + sum)
end
local function y1(x) return (j1(x) * y0(x) - 2 / (math.pi * x)) / j0(x) end -- the Wronskian
local function bessel_k(n) -- the integral of exp(-x cosh t) cosh(n t)
  return function(x)
    local h, sum = 1 / 8, 0.5 * math.exp(-x)
    for k = 1, 48 do
      local e = math.exp(h * k)
      local cosh = (e + 1 / e) / 2
      sum = sum + math.exp(-x * cosh) * (n == 0 and 1 or cosh)
    end
    return h * sum
  end
end
local k0 <const>, k1 <const> = bessel_k(0), bessel_k(1)
local function airy_ai(x) -- Maclaurin's series
  local f, g, even, odd = 1, x, 1, x
  for k = 3, 90, 3 do
    even, odd = even * x ^ 3 / (k * (k - 1)), odd * x ^ 3 / (k * (k + 1))
    f, g = f + even, g + odd
  end
  return 0.35502805388781724 * f - 0.25881940379280680 * g
end
local function igamma(a, x)
  local sum, term = 1, 1
  for k = 1, 80 do
    term = term * x / (a + k)
    sum = sum + term
  end
  return sum * math.exp(a * math.log(x) - x - lgamma(a + 1))
end
local function trunc(x) return x < 0 and math.ceil(x) or math.floor(x) end

local UNARY <const> = {
  entr = function(x) return -x * math.log(x) end,
  erfcx = function(x) return math.exp(x * x) * (1 - erf(x)) end,
  ndtr = function(x) return (1 + erf(x / math.sqrt(2))) / 2 end,
  log_ndtr = function(x) return math.log((1 + erf(x / math.sqrt(2))) / 2) end,
  ndtri = function(x) return math.sqrt(2) * erfinv(2 * x - 1) end,
  i0 = i0, i1 = i1, i0e = function(x) return math.exp(-math.abs(x)) * i0(x) end,
  i1e = function(x) return math.exp(-math.abs(x)) * i1(x) end,
  bessel_j0 = j0, bessel_j1 = j1, bessel_y0 = y0, bessel_y1 = y1,
  modified_bessel_k0 = k0, modified_bessel_k1 = k1,
  scaled_modified_bessel_k0 = function(x) return math.exp(x) * k0(x) end,
  scaled_modified_bessel_k1 = function(x) return math.exp(x) * k1(x) end,
  spherical_bessel_j0 = function(x) return math.sin(x) / x end, airy_ai = airy_ai,
  log2 = function(x) return math.log(x) / math.log(2) end,
  log10 = function(x) return math.log(x) / math.log(10) end,
  tan = math.tan, asin = math.asin, acos = math.acos, atan = math.atan,
  sinh = function(x) return (math.exp(x) - math.exp(-x)) / 2 end,
  cosh = function(x) return (math.exp(x) + math.exp(-x)) / 2 end,
  exp2 = function(x) return 2 ^ x end, erfc = function(x) return 1 - erf(x) end,
  asinh = function(x) return math.log(x + math.sqrt(x * x + 1)) end,
  acosh = function(x) return math.log(x + math.sqrt(x * x - 1)) end,
  atanh = function(x) return math.log((1 + x) / (1 - x)) / 2 end,
  sinc = function(x) return x == 0 and 1 or math.sin(math.pi * x) / (math.pi * x) end,
  logit = function(x)
    x = math.max(0.3, math.min(0.7, x))
    return math.log(x / (1 - x))
  end,
  erfinv = erfinv, lgamma = lgamma, digamma = digamma, ceil = math.ceil, trunc = trunc,
  isinf = function(x) return x == math.huge or x == -math.huge end,
  neg = function(x) return -x end, abs = math.abs, sign = sign,
  square = function(x) return x * x end, exp = math.exp,
  expm1 = function(x) return math.exp(x) - 1 end, log = math.log,
  log1p = function(x) return math.log(1 + x) end, sqrt = math.sqrt,
  rsqrt = function(x) return 1 / math.sqrt(x) end, reciprocal = function(x) return 1 / x end,
  sin = math.sin, cos = math.cos, tanh = tanh, erf = erf,
  sigmoid = function(x) return 1 / (1 + math.exp(-x)) end,
  floor = math.floor, round = round, relu = function(x) return math.max(x, 0) end,
  silu = function(x) return x / (1 + math.exp(-x)) end,
  gelu = function(x) return 0.5 * x * (1 + erf(x / math.sqrt(2))) end,
  gelu_tanh = function(x)
    return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3)))
  end,
  softplus = function(x) return x > 0.8 and x or math.log(1 + math.exp(2 * x)) / 2 end,
  logsigmoid = function(x) return -math.log(1 + math.exp(-x)) end,
  mish = function(x) return x * tanh(math.log(1 + math.exp(x))) end,
  leaky_relu = function(x) return x > 0 and x or 0.2 * x end,
  elu = function(x) return x > 0 and x or 1.5 * (math.exp(x) - 1) end,
  celu = function(x) return x > 0 and x or 1.5 * (math.exp(x / 1.5) - 1) end,
  selu = function(x)
    return 1.0507009873554804935 * (x > 0 and x or 1.6732632423543772848 * (math.exp(x) - 1))
  end,
  relu6 = function(x) return math.max(0, math.min(6, x)) end,
  hardtanh = function(x) return math.max(-2, math.min(1, x)) end,
  hardsigmoid = function(x) return math.max(0, math.min(1, x / 6 + 0.5)) end,
  hardswish = function(x) return x * math.max(0, math.min(1, x / 6 + 0.5)) end,
  softsign = function(x) return x / (1 + math.abs(x)) end,
  tanhshrink = function(x) return x - tanh(x) end,
  softshrink = function(x) return sign(x) * math.max(math.abs(x) - 0.7, 0) end,
  hardshrink = function(x) return math.abs(x) > 0.7 and x or 0 end,
  threshold = function(x) return x > -1 and x or -2 end,
  clamp = function(x) return math.max(-1, math.min(1.5, x)) end,
  isnan = function(x) return x ~= x end,
  isfinite = function(x) return x - x == 0 end,
  logical_not = function(x) return x == 0 end,
}
local function floordiv(a, b) return math.floor(a / b) end
local function zeta(s, q) -- Euler-Maclaurin from 40 terms on
  local sum = 0
  for _ = 1, 40 do sum, q = sum + q ^ -s, q + 1 end
  return sum + q ^ (1 - s) / (s - 1) + q ^ -s / 2 + s * q ^ (-s - 1) / 12
    - s * (s + 1) * (s + 2) * q ^ (-s - 3) / 720
end
local gcd
function gcd(a, b) return b == 0 and math.abs(a) or gcd(b, a % b) end
local BINARY <const> = {
  fmod = function(a, b) return a - b * trunc(a / b) end, atan2 = math.atan,
  logaddexp = function(a, b) return math.log(math.exp(a) + math.exp(b)) end,
  xlogy = function(a, b) return a == 0 and 0 or a * math.log(b) end, zeta = zeta,
  xlog1py = function(a, b) return a * math.log(1 + b) end, igamma = igamma,
  igammac = function(a, b) return 1 - igamma(a, b) end,
  bitwise_and = function(a, b) return a & b end, bitwise_or = function(a, b) return a | b end,
  bitwise_xor = function(a, b) return a ~ b end,
  bitwise_left_shift = function(a, b) return a << b end,
  bitwise_right_shift = function(a, b) return a // (1 << b) end, gcd = gcd,
  fmax = math.max, fmin = math.min,
  copysign = function(a, b) return b < 0 and -math.abs(a) or math.abs(a) end,
  hypot = function(a, b) return math.sqrt(a * a + b * b) end,
  add = function(a, b) return a + b end, sub = function(a, b) return a - b end,
  mul = function(a, b) return a * b end, div = function(a, b) return a / b end,
  pow = function(a, b) return a ^ b end, maximum = math.max, minimum = math.min,
  floor_divide = floordiv, remainder = function(a, b) return a - b * floordiv(a, b) end,
  eq = function(a, b) return a == b end, ne = function(a, b) return a ~= b end,
  lt = function(a, b) return a < b end, le = function(a, b) return a <= b end,
  gt = function(a, b) return a > b end, ge = function(a, b) return a >= b end,
  logical_and = function(a, b) return a ~= 0 and b ~= 0 end,
  logical_or = function(a, b) return a ~= 0 or b ~= 0 end,
  logical_xor = function(a, b) return (a ~= 0) ~= (b ~= 0) end,
}
local OPTIONS <const> = {logit = {eps = 0.3}, clamp = {min = -1, max = 1.5},
  softplus = {beta = 2, threshold = 1.6},
  leaky_relu = {negative_slope = 0.2}, elu = {alpha = 1.5}, celu = {alpha = 1.5},
  hardtanh = {min_val = -2, max_val = 1}, softshrink = {lambd = 0.7}, hardshrink = {lambd = 0.7},
  threshold = {threshold = -1, value = -2}}

-- Without a derivative by their first input.
local UNDERIVED <const> = {airy_ai = true, zeta = true, igamma = true, igammac = true}

local function rows(...)
  local kinds, found = {}, {}
  for _, kind in ipairs{...} do kinds[kind] = true end
  for _, op in ipairs(lt.ops()) do
    if kinds[op.kind] and not op.hidden then found[#found + 1] = op end
  end
  return found
end

local function near(want, got, tolerance)
  if want == got or (want ~= want and got ~= got) then return true end
  return math.abs(want - got) <= tolerance * math.max(1, math.abs(want))
end

local function assert_all(want, got, tolerance, what)
  assert.equal(#want, #got)
  for i = 1, #want do
    if type(want[i]) == "boolean" then
      assert.equal(want[i], got[i], what .. " at " .. i)
    elseif not near(want[i], got[i], tolerance) then
      error(("%s at %d: want %.17g, got %.17g"):format(what, i, want[i], got[i]), 2)
    end
  end
end

local INTEGERS <const> = {}
for _, dtype in ipairs(lt.dtypes()) do
  if dtype.category == "integer" then INTEGERS[#INTEGERS + 1] = dtype end
end

-- What is left of numbers in so few bits.
local function wrapped(list, dtype)
  local out = {}
  for i, v in ipairs(list) do out[i] = dtype.signed and v or v % (1 << 8 * dtype.size) end
  return out
end

local function points(op, n)
  local lo, hi, list = op.lo or -3, op.hi or 3, {}
  for i = 1, n do list[i] = lo + (hi - lo) * ((i * 0.6180339887) % 1) end
  return list
end

local function map(f, ...)
  local lists, out = {...}, {}
  for i = 1, #lists[1] do
    out[i] = f(lists[1][i], lists[2] and lists[2][i])
  end
  return out
end

for _, op in ipairs(rows("unary", "unary_numbers", "clamp", "test")) do
  describe("lt." .. op.name, function()
    local oracle = UNARY[op.name]
    local function call(x) return lt[op.name](x, OPTIONS[op.name]) end

    it("has an oracle here", function() assert.is_function(oracle) end)

    it("equals the formula in f64 and f32", function()
      local list = points(op, 700)
      assert_all(map(oracle, list), call(lt.tensor(list, {dtype = "f64"})):tolist(), 1e-14, "f64")
      local rounded = lt.tensor(list):tolist() -- the f32 values of the points
      assert_all(map(oracle, rounded), call(lt.tensor(list)):tolist(), 1e-6, "f32")
    end)

    it("rounds the f32 result in f16 and bf16", function()
      for dtype, tolerance in pairs{f16 = 1e-3, bf16 = 8e-3} do
        local x = lt.tensor(points(op, 100)):to(dtype)
        assert_all(call(x:to("f32")):tolist(), call(x):tolist(), tolerance, dtype)
      end
    end)

    it("reads strided, repeated, empty and 0-d inputs", function()
      local x = lt.tensor(points(op, 60)):view(6, 10)
      local flat = call(x:transpose(1, 2):contiguous())
      assert_all(flat:flatten():tolist(), call(x:transpose(1, 2)):flatten():tolist(), 0, "strided")
      assert_all(call(x[1]):tolist(), call(x[{1}]:expand(3, 10))[3]:tolist(), 0, "repeated")
      assert.same({0, 4}, call(lt.zeros(0, 4)):clone().shape)
      assert.same({}, call(x[1][1]).shape)
    end)

    if op.differentiable and not UNDERIVED[op.name] then
      it("has the derivative that finite differences give", function()
        local list, h = points(op, 23), 1e-6
        local x = lt.tensor(list, {dtype = "f64", requires_grad = true})
        call(x):sum():backward()
        local want = map(function(v) return (oracle(v + h) - oracle(v - h)) / (2 * h) end, list)
        assert_all(want, x.grad:tolist(), 1e-6, "gradient")
      end)
    end

    if op.dtype == "any" and op.kind ~= "test" and op.name ~= "clamp" then
      it("keeps integers of every width", function()
        for _, dtype in ipairs(INTEGERS) do
          local list = dtype.signed and {-3, 0, 2} or {3, 0, 2}
          local y = call(lt.tensor(list, {dtype = dtype.name}))
          assert.equal(dtype.name, y.dtype)
          assert_all(wrapped(map(oracle, list), dtype), y:tolist(), 0, dtype.name)
        end
      end)
    elseif op.dtype == "float" then
      it("turns integers into f32", function()
        assert.equal("f32", call(lt.tensor{1, 2}).dtype)
      end)
    end
  end)
end

for _, op in ipairs(rows("binary", "compare")) do
  describe("lt." .. op.name, function()
    local oracle, f = BINARY[op.name], lt[op.name]

    it("has an oracle here", function() assert.is_function(oracle) end)

    if op.dtype == "int" then
      it("equals the formula for integers and refuses floats", function()
        local a, b = {12, 5, -7, 0, 1 << 40}, {10, 3, 2, 0, 1}
        local o = {dtype = "i64"}
        assert_all(map(oracle, a, b), f(lt.tensor(a, o), lt.tensor(b, o)):tolist(), 0, "i64")
        assert.matches(op.name .. ": needs integers or bools, got f32",
          error_of(f, lt.zeros(2), lt.zeros(2)))
      end)
      return
    end

    it("equals the formula in f64 and f32, with ties", function()
      local a, b = points(op, 300), points(op, 300)
      table.sort(b)
      for i = 1, 20 do b[i] = a[i] end
      assert_all(map(oracle, a, b),
        f(lt.tensor(a, {dtype = "f64"}), lt.tensor(b, {dtype = "f64"})):tolist(), 1e-13, "f64")
      local x, y = lt.tensor(a), lt.tensor(b)
      assert_all(map(oracle, x:tolist(), y:tolist()), f(x, y):tolist(), 2e-6, "f32")
    end)

    it("broadcasts, and takes a number on either side", function()
      local a, b = lt.tensor(points(op, 3)):view(3, 1), lt.tensor(points(op, 4))
      local full = f(a:expand(3, 4):contiguous(), b:expand(3, 4):contiguous())
      assert_all(full:flatten():tolist(), f(a, b):flatten():tolist(), 0, "broadcast")
      assert_all(f(b, lt.full({4}, 2.0)):tolist(), f(b, 2.0):tolist(), 0, "number right")
      assert_all(f(lt.full({4}, 2.0), b):tolist(), f(2.0, b):tolist(), 0, "number left")
      assert.same({0, 4}, f(lt.zeros(0, 1), b).shape)
    end)

    it("takes integers of every width", function()
      local a, b = {7, 5, 3, 2}, {2, 3, 1, 2}
      for _, dtype in ipairs(INTEGERS) do
        local o = {dtype = dtype.name}
        local y = f(lt.tensor(a, o), lt.tensor(b, o))
        local kept = op.kind == "binary" and op.dtype == "any"
        assert.equal(kept and dtype.name or op.kind == "compare" and "bool" or "f32", y.dtype)
        assert_all(map(oracle, a, b), y:tolist(), 1e-6, dtype.name)
      end
    end)

    it("names both shapes and the line when they do not broadcast", function()
      local ok, message = pcall(function() return f(lt.zeros(2, 3), lt.zeros(4)) end)
      assert.is_false(ok)
      assert.matches("rows_spec.lua:%d+: " .. op.name .. ": shapes do not broadcast: "
        .. "%[2, 3%] and %[4%]", message)
    end)

    if op.differentiable then
      it("has the derivatives that finite differences give, broadcast too", function()
        local h = 1e-6
        local a = lt.tensor(points(op, 6), {dtype = "f64"}):view(3, 2)
        local b = (lt.tensor(points(op, 2), {dtype = "f64"}) * 1.07):clone()
        local function total(x, y) return f(x, y):sum():item() end
        a:requires_grad_()
        b:requires_grad_()
        f(a, b):sum():backward()
        local smooth = op.name ~= "floor_divide"
        local by_a = not UNDERIVED[op.name]
        for i = 1, 3 do
          local d = lt.zeros_like(a:detach())
          d[i][2] = h
          local x, y = a:detach(), b:detach()
          local want = smooth and (total(x + d, y) - total(x - d, y)) / (2 * h) or 0
          if by_a then assert_all({want}, {a.grad[i][2]:item()}, 1e-5, "by a") end
        end
        local d = lt.zeros_like(b:detach())
        d[1] = h
        local want = smooth
          and (total(a:detach(), b:detach() + d) - total(a:detach(), b:detach() - d)) / (2 * h) or 0
        assert_all({want}, {b.grad[1]:item()}, 1e-5, "by b")
      end)
    end
  end)
end
