-- stdlib/ops/gamma.lua: lt.polygamma and lt.mvlgamma, by zeta and lgamma.

local arguments = require "ltrain.ops.arguments"
local c = require "ltrain.c"
local config = require "ltrain.core.config"

local gamma = {}

--- The n-th derivative of digamma at x: (-1)^(n + 1) n! zeta(n + 1, x). As a method of x:
--- x:polygamma(n).
function gamma.polygamma(n, x)
  if c.is_tensor(n) then n, x = x, n end
  arguments.tensor(x, "polygamma", "x")
  n = config.argument(n, "integer", "polygamma", "n", { min = 0 })
  if n == 0 then return x:digamma() end
  local factor = n % 2 == 0 and -1.0 or 1.0
  for k = 2, n do factor = factor * k end
  return c.zeta(n + 1.0, x) * factor
end

--- The logarithm of the multivariate gamma function of dimension p: p (p - 1) / 4 log(pi) and the
--- sum of lgamma(x + (1 - j) / 2) over j = 1..p; NaN where x is not above (p - 1) / 2.
function gamma.mvlgamma(x, p)
  arguments.tensor(x, "mvlgamma", "x")
  p = config.argument(p, "integer", "mvlgamma", "p", { min = 1 })
  if not arguments.is_float(x) then x = x:to "f32" end
  local y = c.lgamma(x)
  for j = 2, p do y = y + c.lgamma(x + (1 - j) / 2) end
  return (y + p * (p - 1) / 4 * math.log(math.pi)):masked_fill(x:le((p - 1) / 2), 0 / 0)
end

return gamma
