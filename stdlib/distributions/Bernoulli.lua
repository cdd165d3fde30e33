-- stdlib/distributions/Bernoulli.lua: 1 with a probability, else 0.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local probabilities = require "ltrain.distributions.probabilities"

local Bernoulli = Distribution:extend("Bernoulli")

--- Bernoulli(probs), Bernoulli{logits = x}
function Bernoulli:init(probs)
  local where <const> = "distributions.Bernoulli"
  local own, logits = probabilities.of(probs, where)
  probs = own
  if logits ~= nil then
    self:set_parameters({ "logits" }, { logits })
    self.probs = self.logits:sigmoid()
  else
    self:set_parameters({ "probs" }, { probs })
    local clamped = probabilities.clamped(self.probs)
    self.logits = clamped:log() - (-clamped):log1p()
  end
  self.mean, self.variance = self.probs, self.probs * (1 - self.probs)
end

function Bernoulli:sample(sample_shape)
  local _ <close> = c.no_grad()
  local u = c.rand(self:shape_of(sample_shape), self.options)
  return (u - self.probs):lt(0):to(self.options.dtype)
end

function Bernoulli:log_prob(value)
  return self.logits * value - probabilities.softplus(self.logits)
end

function Bernoulli:entropy()
  return probabilities.softplus(self.logits) - self.logits * self.probs
end

function Bernoulli:_kl(q)
  local function part(p, ours, theirs) return (p * (ours - theirs)):masked_fill(p:eq(0), 0) end
  local softplus = probabilities.softplus
  local yes = part(self.probs, -softplus(-self.logits), -softplus(-q.logits))
  local no = part(1 - self.probs, -softplus(self.logits), -softplus(q.logits))
  return yes + no
end

return Bernoulli
