-- stdlib/distributions/standard_gamma.lua: samples of the gamma distribution of rate 1, with their
-- derivatives.
--
-- The derivative of a sample x by alpha is implicit, of P(alpha, x) held constant, where P is the
-- cdf (Figurnov et al. 2018). Logarithms of samples stay finite where samples of a small alpha
-- underflow to 0.

local Function = require "ltrain.autograd.Function"
local c = require "ltrain.c"

-- Samples of rate 1 by rejection (Marsaglia and Tsang 2000), of concentration + 1 where that is
-- below 1, scaled back; and their logarithms. Each round draws for all, so that the numbers do not
-- depend on a device.
local function draw(alpha)
  local options = { dtype = alpha.dtype, device = alpha.device }
  local small = alpha:lt(1)
  local d = c.where(small, alpha + 1, alpha) - 1 / 3
  local scale = (d * 9):rsqrt()
  local open = alpha:ge(0):logical_and(alpha:lt(math.huge))
  local result = alpha:masked_fill(alpha:lt(0), 0 / 0) -- of infinity and NaN: themselves
  while open:any():item() do
    local z, u = c.randn(alpha.shape, options), c.rand(alpha.shape, options)
    local v = (z * scale + 1) ^ 3
    local positive = v:gt(0)
    local log_v = v:masked_fill(positive:logical_not(), 1):log()
    local bound = z:square() * 0.5 + d * (1 - v + log_v)
    local taken = open:logical_and(positive):logical_and((u:log() - bound):lt(0))
    result = c.where(taken, d * v, result)
    open = open:logical_and(taken:logical_not())
  end
  local shift = c.where(small, (-c.rand(alpha.shape, options)):log1p() / alpha,
    c.zeros_like(alpha))
  return result * shift:exp(), result:log() + shift
end

-- d log x / d alpha for alpha up to LARGE, where x is below STEPS / 2 but for one in 1e9: by
-- D(a) = (x D(a + 1) + digamma(a + 1) - log x) / a, down from a far above x, where D is near 0.
local LARGE <const>, STEPS <const> = 8, 100

local function small_derivative(alpha, x, log_x)
  local sum, term = x * 0, (alpha + STEPS):digamma() - log_x
  for k = STEPS - 1, 0, -1 do
    local a = (alpha + k):reciprocal()
    sum = (x * sum + term) * a
    term = term - a
  end
  return sum
end

-- The same for large alpha: the saddle point approximation, and around x = alpha its expansion.
local function large_derivative(alpha, x, log_x)
  local a2, x2 = alpha:square(), x:square()
  local near = (1 + 24 * alpha * (1 + 12 * alpha)) * (1440 * a2 + 6 * x * (53 - 120 * x)
    - 65 * x2 / alpha + alpha * (107 + 3600 * x)) / (1244160 * a2:square() * x)
  local is_near = x:ge(0.9 * alpha):logical_and(x:le(1.1 * alpha))
  local apart = c.where(is_near, alpha * 2, x) -- a value away from alpha, where near is taken
  local log_ratio = c.where(is_near, alpha * 0 + math.log(2), log_x - alpha:log())
  local gap, scale = alpha - apart, (8 * alpha):sqrt()
  local bend = (-gap - alpha * log_ratio) ^ -1.5
  local far = log_ratio * (scale / gap - gap:sign() * bend)
    - (2 / alpha):sqrt() * (alpha + apart) / gap:square()
  local stirling = 1 + 1 / (12 * alpha) * (1 + 1 / (24 * alpha))
  return c.where(is_near, near, -stirling * far / scale)
end

local standard_gamma = {}

--- d log x / d alpha at samples x, in f64.
function standard_gamma.derivative(alpha, x, log_x)
  alpha, x, log_x = alpha:to "f64", x:to "f64", log_x:to "f64"
  local is_large = alpha:gt(LARGE)
  local small = small_derivative(alpha:clamp { max = LARGE }, x, log_x)
  if not is_large:any():item() then return small end
  return c.where(is_large, large_derivative(alpha:clamp { min = LARGE }, x, log_x), small)
end

local sampled <const> = Function {
  forward = function(ctx, alpha)
    local x, log_x = draw(alpha)
    ctx:save_for_backward(alpha, x, log_x)
    return x, log_x
  end,
  backward = function(ctx, grad_x, grad_log)
    local alpha, x, log_x = ctx:saved_tensors()
    local derivative = standard_gamma.derivative(alpha, x, log_x):to(alpha.dtype)
    return (grad_x * x + grad_log) * derivative
  end,
}

--- A sample of each concentration of `alpha`, and its logarithm.
function standard_gamma.sample(alpha)
  return sampled(alpha:contiguous())
end

return standard_gamma
