-- stdlib/distributions/Gamma.lua: the gamma distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local special = require "ltrain.distributions.special"

local Gamma = Distribution:extend("Gamma")

--- Gamma(concentration, rate)
function Gamma:init(concentration, rate)
  self:set_parameters({ "concentration", "rate" }, { concentration, rate })
  self.mean = self.concentration / self.rate
  self.variance = self.mean / self.rate
end

-- Samples of rate 1 by rejection (Marsaglia and Tsang 2000), of concentration + 1 where that is
-- below 1, scaled back. Each round draws for all, so that the numbers do not depend on a device.
local function draw(alpha)
  local options = { dtype = alpha.dtype, device = alpha.device }
  local small = alpha:lt(1)
  local d = c.where(small, alpha + 1, alpha) - 1 / 3
  local scale = (d * 9):rsqrt()
  local result, open = c.zeros_like(alpha), c.ones_like(alpha):gt(0)
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
  local u = c.rand(alpha.shape, options)
  return result * c.where(small, (1 - u) ^ alpha:reciprocal(), c.ones_like(alpha))
end

--- By the rate only: a sample has no derivative by the concentration here.
function Gamma:rsample(sample_shape)
  if self.concentration.requires_grad and c.is_grad_enabled() then
    errors.blame("distributions.Gamma: rsample: samples have no gradient by the concentration: "
      .. "detach it, or use sample, and log_prob in the loss")
  end
  local shape = self:shape_of(sample_shape)
  local alpha = self.concentration:detach():expand(shape):contiguous()
  return draw(alpha) / self.rate
end

function Gamma:log_prob(value)
  local a, b = self.concentration, self.rate
  return a * b:log() + special.xlogy(a - 1, value) - b * value - special.lgamma(a)
end

function Gamma:entropy()
  local a = self.concentration
  return a - self.rate:log() + special.lgamma(a) + (1 - a) * special.digamma(a)
end

function Gamma:_kl(q)
  local a, b, lgamma = self.concentration, self.rate, special.lgamma
  return q.concentration * (b / q.rate):log() + lgamma(q.concentration) - lgamma(a)
    + (a - q.concentration) * special.digamma(a) + (q.rate - b) * (a / b)
end

return Gamma
