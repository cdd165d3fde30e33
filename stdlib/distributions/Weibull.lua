-- stdlib/distributions/Weibull.lua: the Weibull distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"

local Weibull = Distribution:extend("Weibull")

Weibull.__arguments = "scale concentration | validate_args"

local EULER <const> = 0.57721566490153286

Weibull.arg_constraints = { scale = constraints.positive, concentration = constraints.positive }
Weibull.support = constraints.non_negative

--- Weibull(scale, concentration, options)
function Weibull:init(scale, concentration, options)
  self:set_parameters({ "scale", "concentration" }, { scale, concentration }, options)
end

-- The mean of x^n, of scale 1.
local function moment(self, n) return (1 + n / self.concentration):lgamma():exp() end

function Weibull:_mean() return self.scale * moment(self, 1) end

function Weibull:_variance()
  return self.scale:square() * (moment(self, 2) - moment(self, 1):square())
end

function Weibull:_mode()
  local k = self.concentration
  return self.scale * ((k - 1):clamp { min = 0 } / k) ^ k:reciprocal()
end

function Weibull:rsample(sample_shape)
  return self:icdf(c.rand(self:shape_of(sample_shape), self.options))
end

function Weibull:log_prob(value)
  local k, z = self.concentration, self:validate_sample(value) / self.scale
  return (k / self.scale):log() + (k - 1):xlogy(z) - z ^ k
end

function Weibull:cdf(value)
  return -(-(self:validate_sample(value) / self.scale) ^ self.concentration):expm1()
end

function Weibull:icdf(value)
  return self.scale * (-(-value):log1p()) ^ self.concentration:reciprocal()
end

function Weibull:entropy()
  local k = self.concentration
  return EULER * (1 - k:reciprocal()) + (self.scale / k):log() + 1
end

return Weibull
