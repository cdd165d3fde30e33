-- stdlib/distributions/Normal.lua: the normal distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"

local Normal = Distribution:extend("Normal")

Normal.__arguments = "loc scale | validate_args"

Normal.arg_constraints = { loc = constraints.real, scale = constraints.positive }

--- Normal(loc, scale, options)
function Normal:init(loc, scale, options)
  self:set_parameters({ "loc", "scale" }, { loc, scale }, options)
  self.mean, self.mode, self.stddev, self.variance = self.loc, self.loc, self.scale,
    self.scale:square()
end

function Normal:rsample(sample_shape)
  return self.loc + c.randn(self:shape_of(sample_shape), self.options) * self.scale
end

function Normal:log_prob(value)
  value = self:validate_sample(value)
  local z = (value - self.loc) / self.scale
  return z:square() * -0.5 - self.scale:log() - 0.5 * math.log(2 * math.pi)
end

function Normal:cdf(value)
  value = self:validate_sample(value)
  return (((value - self.loc) / self.scale * math.sqrt(0.5)):erf() + 1) * 0.5
end

function Normal:icdf(value)
  return self.loc + self.scale * (2 * value - 1):erfinv() * math.sqrt(2)
end

function Normal:entropy()
  return self.scale:log() + (0.5 + 0.5 * math.log(2 * math.pi))
end

function Normal:_kl(q)
  local ratio = (self.scale / q.scale):square()
  local shift = ((self.loc - q.loc) / q.scale):square()
  return (ratio + shift - 1 - ratio:log()) * 0.5
end

return Normal
