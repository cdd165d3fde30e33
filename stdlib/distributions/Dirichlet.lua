-- stdlib/distributions/Dirichlet.lua: the Dirichlet distribution, over probability vectors. B
-- batch, K categories.

local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"
local standard_gamma = require "ltrain.distributions.standard_gamma"

local Dirichlet = Distribution:extend("Dirichlet")

Dirichlet.__arguments = "concentration | validate_args"

Dirichlet.arg_constraints = { concentration = constraints.positive }
Dirichlet.support = constraints.simplex

--- Dirichlet(concentration, options)
---@param concentration Tensor [B..., K]
function Dirichlet:init(concentration, options)
  self:set_vector({ "concentration" }, { concentration }, options)
  local a = self.concentration
  local total = a:sum(-1, { keepdim = true })
  self.mean = a / total
  self.variance = self.mean * (1 - self.mean) / (total + 1)
end

--- Where no concentration is above 1, the vertex of the largest.
function Dirichlet:_mode()
  local a = self.concentration
  local above = (a - 1):clamp { min = 0 }
  local inner = above / above:sum(-1, { keepdim = true })
  local vertex = c.one_hot(a:argmax(-1), self.event_shape[1]):to(a.dtype)
  return c.where(a:lt(1):all(-1, { keepdim = true }), vertex, inner)
end

function Dirichlet:rsample(sample_shape)
  local _, log_x = standard_gamma.sample(self.concentration:expand(self:shape_of(sample_shape)))
  return log_x:softmax(-1)
end

function Dirichlet:log_prob(value)
  value = self:validate_sample(value)
  local a = self.concentration
  return (a - 1):xlogy(value):sum(-1) + a:sum(-1):lgamma() - a:lgamma():sum(-1)
end

function Dirichlet:entropy()
  local a = self.concentration
  local total, k = a:sum(-1), self.event_shape[1]
  return a:lgamma():sum(-1) - total:lgamma() - (k - total) * total:digamma()
    - ((a - 1) * a:digamma()):sum(-1)
end

function Dirichlet:_kl(q)
  local a, b = self.concentration, q.concentration
  local total = a:sum(-1)
  local mean_log = a:digamma() - total:digamma():unsqueeze(-1)
  return total:lgamma() - b:sum(-1):lgamma() - (a:lgamma() - b:lgamma()):sum(-1)
    + ((a - b) * mean_log):sum(-1)
end

return Dirichlet
