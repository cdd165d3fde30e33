-- stdlib/distributions/count_samplers.lua: samples of the binomial and the Poisson distribution.
--
-- A large count is split at a sample of an order statistic (Ahrens and Dieter 1974), so that each
-- round halves it: the number of operations grows with its logarithm. In f64, as counts of the
-- dtype of the parameters.

local c = require "ltrain.c"
local standard_gamma = require "ltrain.distributions.standard_gamma"

local count_samplers = {}

local SMALL <const> = 16

-- Whether any is open, of a mask.
local function any(mask) return mask:any():item() end

local function uniform(x) return c.rand(x.shape, { dtype = "f64", device = x.device }) end

--- Successes among n trials of probability p; tensors of one shape.
function count_samplers.binomial(n, p)
  local dtype, k = n.dtype, c.zeros(n.shape, { dtype = "f64", device = n.device })
  n, p = n:to "f64", p:to "f64"
  local invalid = p:isnan()
  while any(n:gt(SMALL)) do
    -- The i-th smallest of n uniform numbers is b: if b <= p, i are successes, and n - i are left.
    local open = n:gt(SMALL)
    local i = ((n + 1) / 2):floor():clamp { min = 1 }
    local _, log_a = standard_gamma.sample(i)
    local _, log_b = standard_gamma.sample((n + 1 - i):clamp { min = 1 })
    local b = (log_a - log_b):sigmoid()
    local is_below = b:le(p)
    k = k + c.where(open:logical_and(is_below), i, c.zeros_like(k))
    p = c.where(open, c.where(is_below, (p - b) / (1 - b), p / b), p)
    n = c.where(open, c.where(is_below, n - i, i - 1), n)
  end
  for trial = 1, SMALL do
    k = k + uniform(p):lt(p):logical_and(n:ge(trial)):to "f64"
  end
  return k:masked_fill(invalid, 0 / 0):to(dtype)
end

--- Events at a rate.
function count_samplers.poisson(rate)
  local dtype, k = rate.dtype, c.zeros(rate.shape, { dtype = "f64", device = rate.device })
  local invalid = rate:isfinite():logical_not()
  rate = rate:to "f64":masked_fill(invalid, 0)
  while any(rate:gt(SMALL)) do
    -- The m-th event is at time x: if that is below the rate, count on from it; else the m - 1 are
    -- uniform in 0..x.
    local open = rate:gt(SMALL)
    local m = (rate * (7 / 8)):floor():clamp { min = 2 }
    local x = standard_gamma.sample(m)
    local is_below = x:le(rate)
    local within = open:logical_and(is_below:logical_not())
    local inside = count_samplers.binomial((m - 1) * within:to "f64", (rate / x):clamp { max = 1 })
    k = k + c.where(open:logical_and(is_below), m, inside)
    rate = c.where(open, c.where(is_below, rate - x, c.zeros_like(rate)), rate)
  end
  -- By inversion: the count is the first whose cdf is above u; 200 is beyond all.
  local u, mass = uniform(rate), (-rate):exp()
  for count = 1, 200 do
    u = u - mass
    local open = u:ge(0)
    if not any(open) then break end
    k, mass = k + open:to "f64", mass * rate / count
  end
  return k:masked_fill(invalid, 0 / 0):to(dtype)
end

return count_samplers
