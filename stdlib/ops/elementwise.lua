-- stdlib/ops/elementwise.lua: short compositions of elementwise operations: lt.deg2rad, lt.frac,
-- lt.heaviside, lt.signbit, lt.logaddexp2, lt.ldexp, lt.lcm, ...

local c = require "ltrain.c"
local arguments = require "ltrain.ops.arguments"

local elementwise = {}

local LN2 <const> = math.log(2)

local function tensor(x, who) arguments.tensor(x, who, "x") end

--- Degrees in radians.
function elementwise.deg2rad(x)
  tensor(x, "deg2rad")
  return x * (math.pi / 180)
end

--- Radians in degrees.
function elementwise.rad2deg(x)
  tensor(x, "rad2deg")
  return x * (180 / math.pi)
end

--- What x has beyond its integer part, with its sign.
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

--- Whether x has the sign bit: negative numbers, and -0.
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
