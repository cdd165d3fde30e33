-- stdlib/distributions/MixtureSameFamily.lua: a mixture of components of the same class. S sample,
-- B batch, K components, E event.

local Categorical = require "ltrain.distributions.Categorical"
local Distribution = require "ltrain.distributions.Distribution"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local MixtureSameFamily = Distribution:extend("MixtureSameFamily")

MixtureSameFamily.__arguments = "mixture_distribution component_distribution | validate_args"

--- MixtureSameFamily(mixture_distribution, component_distribution, options): a Categorical [B...]
--- over K components, and a distribution [B..., K]
function MixtureSameFamily:init(mixture_distribution, component_distribution, options)
  local mixture, component = mixture_distribution, component_distribution
  local where <const> = "distributions.MixtureSameFamily"
  if not class.is_a(mixture, Categorical) or not class.is_a(component, Distribution) then
    errors.blame("%s: a Categorical and a distribution are needed: got %s and %s", where,
      errors.show(mixture), errors.show(component))
  end
  local wanted, shape = mixture.probs.shape, component.batch_shape
  if #shape == 0 or shape[#shape] ~= wanted[#wanted] then
    errors.blame("%s: the last batch dim of the components is not their number: %s, of %d", where,
      errors.show(shape), wanted[#wanted])
  end
  self:_set_options(options)
  self.batch_shape = table.move(shape, 1, #shape - 1, 1, {})
  self.event_shape, self.options = component.event_shape, component.options
  self.support = component.support
  self.mixture_distribution = mixture:expand(self.batch_shape)
  self.component_distribution = component
end

-- x [..., K] as [..., K, 1...], for the dims of an event.
local function pad(self, x)
  for _ = 1, #self.event_shape do x = x:unsqueeze(-1) end
  return x
end

local function component_dim(self) return -1 - #self.event_shape end

local function average(self, x)
  return (pad(self, self.mixture_distribution.probs) * x):sum(component_dim(self))
end

function MixtureSameFamily:_mean() return average(self, self.component_distribution.mean) end

function MixtureSameFamily:_variance()
  local parts = self.component_distribution
  local centered = parts.mean - self.mean:unsqueeze(component_dim(self))
  return average(self, parts.variance + centered:square())
end

function MixtureSameFamily:sample(sample_shape)
  local _ <close> = c.no_grad()
  local parts = self.component_distribution:sample(sample_shape) -- [S, B, K, E]
  local dim = component_dim(self)
  local ids = pad(self, self.mixture_distribution:sample(sample_shape):unsqueeze(-1))
  local shape = parts.shape
  shape[#shape + 1 + dim] = 1
  return parts:gather(dim, ids:expand(shape):contiguous()):squeeze(dim)
end

function MixtureSameFamily:log_prob(value)
  value = self:validate_sample(value):unsqueeze(component_dim(self))
  local log_weights = self.mixture_distribution.logits:log_softmax(-1)
  return (self.component_distribution:log_prob(value) + log_weights):logsumexp(-1)
end

function MixtureSameFamily:cdf(value)
  value = self:validate_sample(value):unsqueeze(-1)
  return average(self, self.component_distribution:cdf(value))
end

return MixtureSameFamily
