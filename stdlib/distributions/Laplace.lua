-- stdlib/distributions/Laplace.lua: the Laplace distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"

local Laplace = Distribution:extend("Laplace")

--- Laplace(loc, scale)
function Laplace:init(loc, scale)
  self:set_parameters({ "loc", "scale" }, { loc, scale })
  self.mean, self.variance = self.loc, self.scale:square() * 2
end

function Laplace:rsample(sample_shape)
  local u = c.rand(self:shape_of(sample_shape), self.options) * 2 - 1
  local size = -(-u:abs()):log1p()
  return self.loc + self.scale * c.where(u:lt(0), -size, size)
end

function Laplace:log_prob(value)
  return -(self.scale * 2):log() - (value - self.loc):abs() / self.scale
end

function Laplace:entropy() return (self.scale * 2):log() + 1 end

function Laplace:_kl(q)
  local ratio, distance = self.scale / q.scale, (self.loc - q.loc):abs()
  return ratio * (-distance / self.scale):exp() + distance / q.scale - ratio:log() - 1
end

return Laplace
