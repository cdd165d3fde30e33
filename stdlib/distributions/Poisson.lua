-- stdlib/distributions/Poisson.lua: the Poisson distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"
local count_samplers = require "ltrain.distributions.count_samplers"

local Poisson = Distribution:extend("Poisson")

Poisson.__arguments = "rate | validate_args"

Poisson.arg_constraints = { rate = constraints.non_negative }
Poisson.support = constraints.count

--- Poisson(rate, options)
function Poisson:init(rate, options)
  self:set_parameters({ "rate" }, { rate }, options)
  self.mean, self.variance = self.rate, self.rate
end

function Poisson:_mode() return self.rate:floor() end

function Poisson:sample(sample_shape)
  local _ <close> = c.no_grad()
  return count_samplers.poisson(self.rate:expand(self:shape_of(sample_shape)))
end

function Poisson:log_prob(value)
  value = self:validate_sample(value)
  return value:xlogy(self.rate) - self.rate - (value + 1):lgamma()
end

function Poisson:_kl(q)
  return self.rate:xlogy(self.rate / q.rate) - (self.rate - q.rate)
end

return Poisson
