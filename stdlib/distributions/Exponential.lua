-- stdlib/distributions/Exponential.lua: the exponential distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"

local Exponential = Distribution:extend("Exponential")

Exponential.__arguments = "rate | validate_args"

Exponential.arg_constraints = { rate = constraints.positive }
Exponential.support = constraints.non_negative

--- Exponential(rate, options)
function Exponential:init(rate, options)
  self:set_parameters({ "rate" }, { rate }, options)
  self.mean = self.rate:reciprocal()
  self.variance = self.mean:square()
end

function Exponential:rsample(sample_shape)
  return -(-c.rand(self:shape_of(sample_shape), self.options)):log1p() / self.rate
end

function Exponential:log_prob(value)
  value = self:validate_sample(value)
  return self.rate:log() - self.rate * value
end

function Exponential:cdf(value) return -(-self.rate * self:validate_sample(value)):expm1() end
function Exponential:icdf(value) return -(-value):log1p() / self.rate end
function Exponential:_mode() return c.zeros_like(self.rate) end
function Exponential:entropy() return 1 - self.rate:log() end

function Exponential:_kl(q)
  local ratio = q.rate / self.rate
  return ratio - 1 - ratio:log()
end

return Exponential
