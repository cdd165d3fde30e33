-- stdlib/distributions/Beta.lua: the beta distribution.

local Distribution = require "ltrain.distributions.Distribution"
local Gamma = require "ltrain.distributions.Gamma"
local special = require "ltrain.distributions.special"

local Beta = Distribution:extend("Beta")

--- Beta(concentration1, concentration0)
function Beta:init(concentration1, concentration0)
  self:set_parameters({ "concentration1", "concentration0" }, { concentration1, concentration0 })
  local a, b = self.concentration1, self.concentration0
  self.mean = a / (a + b)
  self.variance = self.mean * (b / (a + b)) / (a + b + 1)
end

--- Without gradients by the concentrations, as of Gamma.
function Beta:rsample(sample_shape)
  local a = Gamma(self.concentration1, 1.0):rsample(sample_shape)
  local b = Gamma(self.concentration0, 1.0):rsample(sample_shape)
  return a / (a + b)
end

-- The logarithm of the beta function.
local function log_beta(a, b)
  return special.lgamma(a) + special.lgamma(b) - special.lgamma(a + b)
end

function Beta:log_prob(value)
  local a, b = self.concentration1, self.concentration0
  return special.xlogy(a - 1, value) + special.xlogy(b - 1, 1 - value) - log_beta(a, b)
end

function Beta:entropy()
  local a, b, digamma = self.concentration1, self.concentration0, special.digamma
  return log_beta(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b)
    + (a + b - 2) * digamma(a + b)
end

function Beta:_kl(q)
  local a, b, digamma = self.concentration1, self.concentration0, special.digamma
  local qa, qb = q.concentration1, q.concentration0
  return log_beta(qa, qb) - log_beta(a, b) + (a - qa) * digamma(a) + (b - qb) * digamma(b)
    + (qa - a + qb - b) * digamma(a + b)
end

return Beta
