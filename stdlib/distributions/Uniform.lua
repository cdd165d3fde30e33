-- stdlib/distributions/Uniform.lua: the uniform distribution on low..high, without high.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"

local Uniform = Distribution:extend("Uniform")

--- Uniform(low, high)
function Uniform:init(low, high)
  self:set_parameters({ "low", "high" }, { low, high })
  self.mean, self.variance = (self.low + self.high) / 2, (self.high - self.low):square() / 12
end

function Uniform:rsample(sample_shape)
  return self.low + c.rand(self:shape_of(sample_shape), self.options) * (self.high - self.low)
end

function Uniform:log_prob(value)
  local density = -(self.high - self.low):log() + value * 0
  local inside = (self.low - value):le(0):logical_and((self.high - value):gt(0))
  return density:masked_fill(inside:logical_not(), -math.huge)
end

function Uniform:entropy() return (self.high - self.low):log() end

function Uniform:_kl(q)
  local result = ((q.high - q.low) / (self.high - self.low)):log()
  local beyond = (q.low - self.low):gt(0):logical_or((self.high - q.high):gt(0))
  return result:masked_fill(beyond, math.huge)
end

return Uniform
