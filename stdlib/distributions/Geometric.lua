-- stdlib/distributions/Geometric.lua: the geometric distribution: failures before the first
-- success.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"
local probs_or_logits = require "ltrain.distributions.probs_or_logits"

local Geometric = Distribution:extend("Geometric")

Geometric.__arguments = "probs | logits validate_args"

Geometric.arg_constraints = { probs = constraints.unit_interval, logits = constraints.real }
Geometric.support = constraints.count

--- Geometric(probs, options), Geometric{logits = x}
function Geometric:init(probs, options)
  probs_or_logits.set(self, {}, {}, probs, options)
  self.mean = self.probs:reciprocal() - 1
  self.variance = self.mean / self.probs
end

function Geometric:_mode() return c.zeros_like(self.probs) end

function Geometric:sample(sample_shape)
  local _ <close> = c.no_grad()
  local u = c.rand(self:shape_of(sample_shape), self.options)
  return ((-u):log1p() / (-probs_or_logits.clamped(self.probs)):log1p()):floor()
end

function Geometric:log_prob(value)
  value = self:validate_sample(value)
  return self.logits:logsigmoid() - value * self.logits:softplus()
end

function Geometric:entropy() return probs_or_logits.entropy(self) / self.probs end

function Geometric:_kl(q)
  return q.logits:softplus() / self.probs - q.logits - self:entropy()
end

return Geometric
