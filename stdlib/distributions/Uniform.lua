-- stdlib/distributions/Uniform.lua: the uniform distribution on [low, high).

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"

local Uniform = Distribution:extend("Uniform")

Uniform.__arguments = "low high | validate_args"

Uniform.arg_constraints = { high = constraints.above_low }
Uniform.support = constraints.interval

--- Uniform(low, high, options)
function Uniform:init(low, high, options)
  self:set_parameters({ "low", "high" }, { low, high }, options)
  self.mean, self.variance = (self.low + self.high) / 2, (self.high - self.low):square() / 12
end

function Uniform:rsample(sample_shape)
  return self.low + c.rand(self:shape_of(sample_shape), self.options) * (self.high - self.low)
end

function Uniform:log_prob(value)
  value = self:validate_sample(value)
  local density = -(self.high - self.low):log() + value * 0
  local inside = (self.low - value):le(0):logical_and((self.high - value):gt(0))
  return density:masked_fill(inside:logical_not(), -math.huge)
end

function Uniform:cdf(value)
  value = self:validate_sample(value)
  return ((value - self.low) / (self.high - self.low)):clamp { min = 0, max = 1 }
end

function Uniform:icdf(value) return self.low + value * (self.high - self.low) end

function Uniform:_mode() return c.full(self.batch_shape, 0 / 0, self.options) end

function Uniform:entropy() return (self.high - self.low):log() end

function Uniform:_kl(q)
  local result = ((q.high - q.low) / (self.high - self.low)):log()
  local beyond = (q.low - self.low):gt(0):logical_or((self.high - q.high):gt(0))
  return result:masked_fill(beyond, math.huge)
end

return Uniform
