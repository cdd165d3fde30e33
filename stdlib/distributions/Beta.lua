-- stdlib/distributions/Beta.lua: the beta distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"
local standard_gamma = require "ltrain.distributions.standard_gamma"

local Beta = Distribution:extend("Beta")

Beta.__arguments = "concentration1 concentration0 | validate_args"

Beta.arg_constraints = { concentration1 = constraints.positive,
  concentration0 = constraints.positive }
Beta.support = constraints.unit_interval

--- Beta(concentration1, concentration0, options)
function Beta:init(concentration1, concentration0, options)
  self:set_parameters({ "concentration1", "concentration0" }, { concentration1, concentration0 },
    options)
  local a, b = self.concentration1, self.concentration0
  self.mean = a / (a + b)
  self.variance = self.mean * (b / (a + b)) / (a + b + 1)
end

function Beta:_mode()
  local a, b = self.concentration1, self.concentration0
  local inner = (a - 1) / (a + b - 2)
  local is_end, nan = a:le(1):logical_or(b:le(1)), a:le(1):logical_and(b:le(1))
  local mode = c.where(is_end, a:gt(b):to(a.dtype), inner)
  return mode:masked_fill(nan:logical_and(a:eq(b)), 0 / 0)
end

function Beta:rsample(sample_shape)
  local shape = self:shape_of(sample_shape)
  local _, log_a = standard_gamma.sample(self.concentration1:expand(shape))
  local _, log_b = standard_gamma.sample(self.concentration0:expand(shape))
  return (log_a - log_b):sigmoid()
end

-- The logarithm of the beta function.
local function log_beta(a, b)
  return c.lgamma(a) + c.lgamma(b) - c.lgamma(a + b)
end

function Beta:log_prob(value)
  value = self:validate_sample(value)
  local a, b = self.concentration1, self.concentration0
  return (a - 1):xlogy(value) + (b - 1):xlogy(1 - value) - log_beta(a, b)
end

function Beta:entropy()
  local a, b, digamma = self.concentration1, self.concentration0, c.digamma
  return log_beta(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b)
    + (a + b - 2) * digamma(a + b)
end

function Beta:_kl(q)
  local a, b, digamma = self.concentration1, self.concentration0, c.digamma
  local qa, qb = q.concentration1, q.concentration0
  return log_beta(qa, qb) - log_beta(a, b) + (a - qa) * digamma(a) + (b - qb) * digamma(b)
    + (qa - a + qb - b) * digamma(a + b)
end

return Beta
