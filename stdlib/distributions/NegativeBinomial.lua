-- stdlib/distributions/NegativeBinomial.lua: the negative binomial distribution: successes before a
-- number of failures.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"
local count_samplers = require "ltrain.distributions.count_samplers"
local standard_gamma = require "ltrain.distributions.standard_gamma"
local probs_or_logits = require "ltrain.distributions.probs_or_logits"

local NegativeBinomial = Distribution:extend("NegativeBinomial")

NegativeBinomial.__arguments = "total_count probs | logits validate_args"

NegativeBinomial.arg_constraints = { total_count = constraints.non_negative,
  probs = constraints.half_open_unit_interval, logits = constraints.real }
NegativeBinomial.support = constraints.count

--- NegativeBinomial(total_count, probs, options), NegativeBinomial{total_count = n, logits = x}
function NegativeBinomial:init(total_count, probs, options)
  probs_or_logits.set(self, { "total_count" }, { total_count }, probs, options)
  self.mean = self.total_count * self.logits:exp()
  self.variance = self.mean / (-self.logits):sigmoid()
end

function NegativeBinomial:_mode()
  return ((self.total_count - 1) * self.logits:exp()):floor():clamp { min = 0 }
end

function NegativeBinomial:sample(sample_shape)
  local _ <close> = c.no_grad()
  local shape = self:shape_of(sample_shape)
  local rate = standard_gamma.sample(self.total_count:expand(shape)) * self.logits:exp()
  return count_samplers.poisson(rate)
end

function NegativeBinomial:log_prob(value)
  value = self:validate_sample(value)
  local n = self.total_count
  local choices = (n + value):lgamma() - (value + 1):lgamma() - n:lgamma()
  return choices:masked_fill((n + value):eq(0), 0) + value * self.logits:logsigmoid()
    - n * self.logits:softplus()
end

return NegativeBinomial
