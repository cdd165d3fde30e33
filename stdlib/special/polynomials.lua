-- stdlib/special/polynomials.lua: orthogonal polynomials P_n(x), by the recurrence of each:
-- P_0 = 1, P_1 and P_k from the two before it.
--
-- M. Abramowitz, I. Stegun, Handbook of Mathematical Functions, 1964, chapter 22.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local is_float = require "ltrain.core.is_float"

local polynomials = {}

local function chebyshev(x, _, p, q) return 2 * x * p - q end

-- By the polynomial: P_1, and P_k of x, k, P_{k - 1} and P_{k - 2}; Chebyshev's have one step.
local FIRST <const> = {
  chebyshev_polynomial_t = function(x) return x end,
  chebyshev_polynomial_u = function(x) return 2 * x end,
  chebyshev_polynomial_v = function(x) return 2 * x - 1 end,
  chebyshev_polynomial_w = function(x) return 2 * x + 1 end,
  hermite_polynomial_h = function(x) return 2 * x end,
  hermite_polynomial_he = function(x) return x end,
  laguerre_polynomial_l = function(x) return 1 - x end,
  legendre_polynomial_p = function(x) return x end,
}
local STEPS <const> = {
  hermite_polynomial_h = function(x, k, p, q) return 2 * x * p - 2 * (k - 1) * q end,
  hermite_polynomial_he = function(x, k, p, q) return x * p - (k - 1) * q end,
  laguerre_polynomial_l = function(x, k, p, q)
    return ((2 * k - 1 - x) * p - (k - 1) * q) / k
  end,
  legendre_polynomial_p = function(x, k, p, q) return ((2 * k - 1) * x * p - (k - 1) * q) / k end,
}

-- x as a floating tensor, and the degrees: a number or a tensor without fractions.
local function operands(who, x, n)
  if not c.is_tensor(x) and not c.is_tensor(n) then
    errors.blame("%s: x or n must be a tensor, got %s and %s", who, errors.show(x), errors.show(n))
  end
  if not c.is_tensor(n) then n = math.floor(config.argument(n, "number", who, "n")) end
  if not c.is_tensor(x) then
    x = c.tensor(config.argument(x, "number", who, "x"),
      { dtype = is_float(n.dtype) and n.dtype or "f32", device = n.device })
  end
  if not is_float(x.dtype) then
    x = x:to(c.is_tensor(n) and is_float(n.dtype) and n.dtype or "f32")
  end
  return x, c.is_tensor(n) and n:trunc() or n
end

local function evaluate(name, x, n)
  local kind <const>, shifted = name:gsub("^shifted_", "")
  local degree
  x, degree = operands("special." .. name, x, n)
  if shifted == 1 then x = 2 * x - 1 end
  local is_list <const> = c.is_tensor(degree)
  local most <const> = not is_list and degree or degree:numel() > 0 and degree:max():item() or 0
  local q, p = c.ones_like(x), FIRST[kind](x)
  if not is_list then
    if degree < 1 then return degree == 0 and q or c.zeros_like(x) end
    for k = 2, degree do p, q = (STEPS[kind] or chebyshev)(x, k, p, q), p end
    return p
  end
  local y = c.where(degree:eq(0), q, c.zeros_like(q))
  for k = 1, most do
    if k > 1 then p, q = (STEPS[kind] or chebyshev)(x, k, p, q), p end
    y = c.where(degree:eq(k), p, y)
  end
  return y
end

--- The Chebyshev polynomial of the first kind, of degree n at x: cos(n acos(x)). Of all of these
--- polynomials n is a number or a tensor, whose fractions are dropped; below 0 they are 0.
function polynomials.chebyshev_polynomial_t(x, n)
  local y <const> = evaluate("chebyshev_polynomial_t", x, n)
  return y
end

--- The Chebyshev polynomial of the second kind: sin((n + 1) t) / sin(t) at x = cos(t).
function polynomials.chebyshev_polynomial_u(x, n)
  local y <const> = evaluate("chebyshev_polynomial_u", x, n)
  return y
end

--- The Chebyshev polynomial of the third kind: cos((n + 1/2) t) / cos(t / 2) at x = cos(t).
function polynomials.chebyshev_polynomial_v(x, n)
  local y <const> = evaluate("chebyshev_polynomial_v", x, n)
  return y
end

--- The Chebyshev polynomial of the fourth kind: sin((n + 1/2) t) / sin(t / 2) at x = cos(t).
function polynomials.chebyshev_polynomial_w(x, n)
  local y <const> = evaluate("chebyshev_polynomial_w", x, n)
  return y
end

--- chebyshev_polynomial_t at 2 x - 1, for x from 0 to 1.
function polynomials.shifted_chebyshev_polynomial_t(x, n)
  local y <const> = evaluate("shifted_chebyshev_polynomial_t", x, n)
  return y
end

--- chebyshev_polynomial_u at 2 x - 1.
function polynomials.shifted_chebyshev_polynomial_u(x, n)
  local y <const> = evaluate("shifted_chebyshev_polynomial_u", x, n)
  return y
end

--- chebyshev_polynomial_v at 2 x - 1.
function polynomials.shifted_chebyshev_polynomial_v(x, n)
  local y <const> = evaluate("shifted_chebyshev_polynomial_v", x, n)
  return y
end

--- chebyshev_polynomial_w at 2 x - 1.
function polynomials.shifted_chebyshev_polynomial_w(x, n)
  local y <const> = evaluate("shifted_chebyshev_polynomial_w", x, n)
  return y
end

--- The physicists' Hermite polynomial: orthogonal by exp(-x x).
function polynomials.hermite_polynomial_h(x, n)
  local y <const> = evaluate("hermite_polynomial_h", x, n)
  return y
end

--- The probabilists' Hermite polynomial: orthogonal by exp(-x x / 2).
function polynomials.hermite_polynomial_he(x, n)
  local y <const> = evaluate("hermite_polynomial_he", x, n)
  return y
end

--- The Laguerre polynomial: orthogonal by exp(-x) for x > 0.
function polynomials.laguerre_polynomial_l(x, n)
  local y <const> = evaluate("laguerre_polynomial_l", x, n)
  return y
end

--- The Legendre polynomial: orthogonal on -1..1.
function polynomials.legendre_polynomial_p(x, n)
  local y <const> = evaluate("legendre_polynomial_p", x, n)
  return y
end

return polynomials
