-- stdlib/distributions/Exponential.lua: the exponential distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"

local Exponential = Distribution:extend("Exponential")

--- Exponential(rate)
function Exponential:init(rate)
  self:set_parameters({ "rate" }, { rate })
  self.mean = self.rate:reciprocal()
  self.variance = self.mean:square()
end

function Exponential:rsample(sample_shape)
  return -(-c.rand(self:shape_of(sample_shape), self.options)):log1p() / self.rate
end

function Exponential:log_prob(value) return self.rate:log() - self.rate * value end

function Exponential:entropy() return 1 - self.rate:log() end

function Exponential:_kl(q)
  local ratio = q.rate / self.rate
  return ratio - 1 - ratio:log()
end

return Exponential
