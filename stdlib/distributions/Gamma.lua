-- stdlib/distributions/Gamma.lua: the gamma distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"
local standard_gamma = require "ltrain.distributions.standard_gamma"

local Gamma = Distribution:extend("Gamma")

Gamma.__arguments = "concentration rate | validate_args"

Gamma.arg_constraints = { concentration = constraints.positive, rate = constraints.positive }
Gamma.support = constraints.non_negative

--- Gamma(concentration, rate, options)
function Gamma:init(concentration, rate, options)
  self:set_parameters({ "concentration", "rate" }, { concentration, rate }, options)
  self.mean = self.concentration / self.rate
  self.variance = self.mean / self.rate
end

function Gamma:_mode() return ((self.concentration - 1) / self.rate):clamp { min = 0 } end

function Gamma:rsample(sample_shape)
  local x = standard_gamma.sample(self.concentration:expand(self:shape_of(sample_shape)))
  return x / self.rate
end

function Gamma:log_prob(value)
  value = self:validate_sample(value)
  local a, b = self.concentration, self.rate
  return a * b:log() + (a - 1):xlogy(value) - b * value - c.lgamma(a)
end

function Gamma:entropy()
  local a = self.concentration
  return a - self.rate:log() + c.lgamma(a) + (1 - a) * c.digamma(a)
end

function Gamma:_kl(q)
  local a, b, lgamma = self.concentration, self.rate, c.lgamma
  return q.concentration * (b / q.rate):log() + lgamma(q.concentration) - lgamma(a)
    + (a - q.concentration) * c.digamma(a) + (q.rate - b) * (a / b)
end

return Gamma
