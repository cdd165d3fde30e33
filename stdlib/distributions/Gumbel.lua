-- stdlib/distributions/Gumbel.lua: the Gumbel distribution.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"
local probs_or_logits = require "ltrain.distributions.probs_or_logits"

local Gumbel = Distribution:extend("Gumbel")

Gumbel.__arguments = "loc scale | validate_args"

local EULER <const> = 0.57721566490153286

Gumbel.arg_constraints = { loc = constraints.real, scale = constraints.positive }

--- Gumbel(loc, scale, options)
function Gumbel:init(loc, scale, options)
  self:set_parameters({ "loc", "scale" }, { loc, scale }, options)
  self.mean, self.mode = self.loc + self.scale * EULER, self.loc
  self.variance = self.scale:square() * (math.pi ^ 2 / 6)
end

function Gumbel:rsample(sample_shape)
  return self:icdf(probs_or_logits.clamped(c.rand(self:shape_of(sample_shape), self.options)))
end

function Gumbel:log_prob(value)
  local z = (self.loc - self:validate_sample(value)) / self.scale
  return z - z:exp() - self.scale:log()
end

function Gumbel:cdf(value)
  return (-((self.loc - self:validate_sample(value)) / self.scale):exp()):exp()
end

function Gumbel:icdf(value) return self.loc - self.scale * (-value:log()):log() end

function Gumbel:entropy() return self.scale:log() + (1 + EULER) end

function Gumbel:_kl(q)
  local ratio, shift = self.scale / q.scale, (q.loc - self.loc) / q.scale
  return ratio * EULER - ratio:log() - shift + (shift + (1 + ratio):lgamma()):exp() - (1 + EULER)
end

return Gumbel
