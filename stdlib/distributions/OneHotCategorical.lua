-- stdlib/distributions/OneHotCategorical.lua: one of K categories, as a one-hot vector. B batch, K
-- categories.

local Categorical = require "ltrain.distributions.Categorical"
local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local constraints = require "ltrain.distributions.constraints"

local OneHotCategorical = Distribution:extend("OneHotCategorical")

OneHotCategorical.__arguments = "probs | logits validate_args"

OneHotCategorical.support = constraints.one_hot

--- OneHotCategorical(probs, options), OneHotCategorical{logits = x}
---@param probs Tensor [B..., K]
function OneHotCategorical:init(probs, options)
  local categorical = Categorical(probs, options)
  self.categorical, self.validate_args = categorical, categorical.validate_args
  self.probs, self.logits, self.options = categorical.probs, categorical.logits, categorical.options
  self.batch_shape = categorical.batch_shape
  self.event_shape = { self.probs.shape[self.probs.ndim] }
  self.mean, self.variance = self.probs, self.probs * (1 - self.probs)
end

local function one_hot(self, ids)
  return c.one_hot(ids, self.event_shape[1]):to(self.options.dtype)
end

function OneHotCategorical:_mode() return one_hot(self, self.categorical.mode) end

function OneHotCategorical:sample(sample_shape)
  return one_hot(self, self.categorical:sample(sample_shape))
end

function OneHotCategorical:log_prob(value)
  return self.categorical:log_prob(self:validate_sample(value):argmax(-1))
end

function OneHotCategorical:entropy() return self.categorical:entropy() end

function OneHotCategorical:_kl(q) return self.categorical:_kl(q.categorical) end

return OneHotCategorical
