-- stdlib/distributions/Laplace.lua: the Laplace distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"

local Laplace = Distribution:extend("Laplace")

Laplace.__arguments = "loc scale | validate_args"

Laplace.arg_constraints = { loc = constraints.real, scale = constraints.positive }

--- Laplace(loc, scale, options)
function Laplace:init(loc, scale, options)
  self:set_parameters({ "loc", "scale" }, { loc, scale }, options)
  self.mean, self.mode, self.variance = self.loc, self.loc, self.scale:square() * 2
end

function Laplace:rsample(sample_shape)
  local u = c.rand(self:shape_of(sample_shape), self.options) * 2 - 1
  local size = -(-u:abs()):log1p()
  return self.loc + self.scale * c.where(u:lt(0), -size, size)
end

function Laplace:log_prob(value)
  value = self:validate_sample(value)
  return -(self.scale * 2):log() - (value - self.loc):abs() / self.scale
end

function Laplace:cdf(value)
  local z = (self:validate_sample(value) - self.loc) / self.scale
  return 0.5 - 0.5 * z:sign() * (-z:abs()):expm1()
end

function Laplace:icdf(value)
  local side = value - 0.5
  return self.loc - self.scale * side:sign() * (-2 * side:abs()):log1p()
end

function Laplace:entropy() return (self.scale * 2):log() + 1 end

function Laplace:_kl(q)
  local ratio, distance = self.scale / q.scale, (self.loc - q.loc):abs()
  return ratio * (-distance / self.scale):exp() + distance / q.scale - ratio:log() - 1
end

return Laplace
