-- stdlib/distributions/Bernoulli.lua: the Bernoulli distribution: 1 with a given probability, else
-- 0.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"
local probs_or_logits = require "ltrain.distributions.probs_or_logits"

local Bernoulli = Distribution:extend("Bernoulli")

Bernoulli.__arguments = "probs | logits validate_args"

Bernoulli.arg_constraints = { probs = constraints.unit_interval, logits = constraints.real }
Bernoulli.support = constraints.boolean

--- Bernoulli(probs, options), Bernoulli{logits = x}
function Bernoulli:init(probs, options)
  probs_or_logits.set(self, {}, {}, probs, options)
  self.mean, self.variance = self.probs, self.probs * (1 - self.probs)
end

function Bernoulli:_mode()
  return self.probs:gt(0.5):to(self.options.dtype):masked_fill(self.probs:eq(0.5), 0 / 0)
end

function Bernoulli:sample(sample_shape)
  local _ <close> = c.no_grad()
  return self.probs:expand(self:shape_of(sample_shape)):bernoulli()
end

function Bernoulli:log_prob(value)
  value = self:validate_sample(value)
  return self.logits * value - self.logits:softplus()
end

function Bernoulli:entropy()
  return probs_or_logits.entropy(self)
end

function Bernoulli:_kl(q)
  local function part(p, ours, theirs) return (p * (ours - theirs)):masked_fill(p:eq(0), 0) end
  return part(self.probs, self.logits:logsigmoid(), q.logits:logsigmoid())
    + part(1 - self.probs, (-self.logits):logsigmoid(), (-q.logits):logsigmoid())
end

return Bernoulli
