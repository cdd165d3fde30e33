-- stdlib/distributions/Binomial.lua: the binomial distribution: successes in a number of trials.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"
local errors = require "ltrain.core.errors"
local count_samplers = require "ltrain.distributions.count_samplers"
local probs_or_logits = require "ltrain.distributions.probs_or_logits"

local Binomial = Distribution:extend("Binomial")

Binomial.__arguments = "total_count probs | logits validate_args"

Binomial.arg_constraints = { total_count = constraints.count, probs = constraints.unit_interval,
  logits = constraints.real }
Binomial.support = constraints.up_to_total

--- Binomial(total_count, probs, options), Binomial{total_count = n, logits = x}
function Binomial:init(total_count, probs, options)
  probs_or_logits.set(self, { "total_count" }, { total_count }, probs, options)
  self.mean = self.total_count * self.probs
  self.variance = self.mean * (1 - self.probs)
end

function Binomial:_mode()
  return ((self.total_count + 1) * self.probs):floor():minimum(self.total_count)
end

function Binomial:sample(sample_shape)
  local _ <close> = c.no_grad()
  local shape = self:shape_of(sample_shape)
  return count_samplers.binomial(self.total_count:expand(shape), self.probs:expand(shape))
end

function Binomial:log_prob(value)
  value = self:validate_sample(value)
  local n = self.total_count
  return (n + 1):lgamma() - (value + 1):lgamma() - (n - value + 1):lgamma()
    + value * self.logits - n * self.logits:softplus()
end

function Binomial:entropy()
  local sum, unchecked = 0, setmetatable({ validate_args = false }, { __index = self })
  for k = 0, self.total_count:max():item() // 1 do
    local log_p = Binomial.log_prob(unchecked, c.full({}, k, self.options))
    sum = sum - (log_p:exp() * log_p):masked_fill(self.total_count:lt(k), 0)
  end
  return sum
end

function Binomial:_kl(q)
  if q.total_count:lt(self.total_count):logical_and(q.total_count:gt(0)):any():item() then
    return self.probs * math.huge
  elseif not q.total_count:eq(self.total_count):all():item() then
    errors.blame("kl_divergence: it is not known between Binomials whose total_count differ")
  end
  return self.total_count * (self.probs * (self.logits - q.logits)
    - self.logits:softplus() + q.logits:softplus())
end

return Binomial
