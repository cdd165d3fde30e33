-- stdlib/ops/elementwise.lua: short compositions of elementwise operations: lt.deg2rad, lt.frac,
-- lt.heaviside, lt.signbit, lt.logaddexp2, lt.ldexp, lt.frexp, lt.lcm, ...

local c = require "ltrain.c"
local arguments = require "ltrain.ops.arguments"
local errors = require "ltrain.core.errors"

local elementwise = {}

local LN2 <const> = math.log(2)

local function tensor(x, who) arguments.tensor(x, who, "x") end

--- Converts degrees to radians.
function elementwise.deg2rad(x)
  tensor(x, "deg2rad")
  return x * (math.pi / 180)
end

--- Converts radians to degrees.
function elementwise.rad2deg(x)
  tensor(x, "rad2deg")
  return x * (180 / math.pi)
end

--- The fractional part of x, with its sign.
function elementwise.frac(x)
  tensor(x, "frac")
  return x - x:trunc()
end

--- 0 where x is negative, 1 where it is positive, `values` where it is 0.
---@param x Tensor
---@param values Tensor of the same dtype, broadcast
function elementwise.heaviside(x, values)
  tensor(x, "heaviside")
  arguments.tensor(values, "heaviside", "values")
  return c.where(x:eq(0), values, x:gt(0):to(x.dtype))
end

--- Whether the sign bit of x is set: for negative numbers and -0.
function elementwise.signbit(x)
  tensor(x, "signbit")
  if not arguments.is_float(x) then return x:lt(0) end
  return c.copysign(c.ones_like(x), x):lt(0)
end

--- Whether x is positive infinity.
function elementwise.isposinf(x)
  tensor(x, "isposinf")
  return x:isinf():logical_and(x:gt(0))
end

--- Whether x is negative infinity.
function elementwise.isneginf(x)
  tensor(x, "isneginf")
  return x:isinf():logical_and(x:lt(0))
end

--- log2(2 ^ a + 2 ^ b), without overflow.
function elementwise.logaddexp2(a, b)
  tensor(a, "logaddexp2")
  return c.logaddexp(a * LN2, b * LN2) / LN2
end

--- x * 2 ^ exponent.
function elementwise.ldexp(x, exponent)
  tensor(x, "ldexp")
  arguments.tensor(exponent, "ldexp", "exponent")
  return x * (arguments.is_float(exponent) and exponent or exponent:float()):exp2()
end

-- x * 2 ^ exponent, in halves, since 2 ^ exponent may be infinite.
local function scaled(x, exponent)
  local half <const> = (exponent / 2):floor()
  return x * half:exp2() * (exponent - half):exp2()
end

--- The mantissa m, 0.5 <= |m| < 1, and the exponent, i32, of x = m * 2 ^ exponent; 0, infinities
--- and NaN have the exponent 0.
function elementwise.frexp(x)
  tensor(x, "frexp")
  if not arguments.is_float(x) then errors.blame("frexp: x must be floating, got %s", x.dtype) end
  local is_plain <const> = x:isfinite():logical_and(x:ne(0))
  local size <const> = x:detach():double():abs():masked_fill(~is_plain, 1)
  local exponent = size:log2():floor() + 1
  local m <const> = scaled(size, -exponent) -- rounding may leave it just outside
  exponent = exponent + m:ge(1):double() - m:lt(0.5):double()
  exponent = exponent:masked_fill(~is_plain, 0)
  return scaled(x:double(), -exponent):to(x.dtype), exponent:to "i32"
end

-- The bits of a mantissa, the exponent of the smallest number above 0 and the largest number.
local STEPS <const> = { f16 = { 11, -24, 65504 }, bf16 = { 8, -133, 0x1.fep127 },
  f32 = { 24, -149, 0x1.fffffep127 }, f64 = { 53, -1074, 0x1.fffffffffffffp1023 } }

--- The number next to x in its dtype, towards y; its derivative is that of x.
---@param x Tensor
---@param y Tensor of the same dtype, broadcast
function elementwise.nextafter(x, y)
  tensor(x, "nextafter")
  arguments.tensor(y, "nextafter", "y")
  local bits <const> = STEPS[x.dtype]
  if not bits or y.dtype ~= x.dtype then
    errors.blame("nextafter: needs two floating tensors of one dtype, got %s and %s", x.dtype,
      y.dtype)
  end
  local start <const> = x:masked_fill(~x:isfinite(), 0)
  local constant <const> = start:detach()
  x, y = x:detach(), y:detach()
  local a <const>, b <const> = x:double(), y:double()
  local m, exponent = elementwise.frexp(x)
  local is_inward <const> = b:abs():lt(a:abs()):logical_or((a * b:sign()):lt(0))
  exponent = exponent:double() - bits[1] - m:abs():eq(0.5):logical_and(is_inward):double()
  local step <const> = exponent:clamp { min = bits[2] }:exp2():masked_fill(a:eq(0), 2.0 ^ bits[2])
  local moved <const> = c.where(a:isinf(), a:sign() * bits[3], a + (b - a):sign() * step)
  return c.where(x:eq(y), y, moved:to(x.dtype)) + (start - constant)
end

--- a to the power of b, both in f64.
function elementwise.float_power(a, b)
  tensor(a, "float_power")
  return a:double() ^ (c.is_tensor(b) and b:double() or b)
end

--- The least common multiple of integers.
function elementwise.lcm(a, b)
  tensor(a, "lcm")
  arguments.tensor(b, "lcm", "b")
  local divisor <const> = a:gcd(b)
  return (a:floor_divide(divisor:maximum(1)) * b):abs()
end

return elementwise
