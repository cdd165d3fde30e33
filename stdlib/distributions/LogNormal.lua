-- stdlib/distributions/LogNormal.lua: the log-normal distribution.

local ExpTransform = require "ltrain.distributions.ExpTransform"
local Normal = require "ltrain.distributions.Normal"
local TransformedDistribution = require "ltrain.distributions.TransformedDistribution"

local LogNormal = TransformedDistribution:extend("LogNormal")

LogNormal.__arguments = "loc scale | validate_args"

--- LogNormal(loc, scale, options): of the logarithms
function LogNormal:init(loc, scale, options)
  local base = Normal(loc, scale, options)
  self.super.init(self, base, ExpTransform(), { validate_args = base.validate_args })
  self.loc, self.scale = base.loc, base.scale
end

function LogNormal:_mean() return (self.loc + self.scale:square() / 2):exp() end
function LogNormal:_mode() return (self.loc - self.scale:square()):exp() end

function LogNormal:_variance()
  local square = self.scale:square()
  return square:expm1() * (2 * self.loc + square):exp()
end

function LogNormal:entropy() return self.base_dist:entropy() + self.loc end

function LogNormal:_kl(q) return self.base_dist:_kl(q.base_dist) end

return LogNormal
