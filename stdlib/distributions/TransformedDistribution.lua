-- stdlib/distributions/TransformedDistribution.lua: the distribution of a transformed random
-- variable.
--
--   local lt = require "ltrain"
--   local D = lt.distributions
--   local squashed = D.TransformedDistribution(D.Normal(lt.zeros(3), 1.0), { D.TanhTransform() })
--   print(squashed:rsample{ 4 }.shape[1], squashed:log_prob(0.0)[1]:item() < 0)
--   -- prints: 4	true

local ComposeTransform = require "ltrain.distributions.ComposeTransform"
local Distribution = require "ltrain.distributions.Distribution"
local Transform = require "ltrain.distributions.Transform"
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local kl_divergence = require "ltrain.distributions.kl_divergence"
local sum_last = require "ltrain.distributions.sum_last"

local TransformedDistribution = Distribution:extend("TransformedDistribution")

TransformedDistribution.__arguments = "base_distribution transforms | validate_args"

--- TransformedDistribution(base_distribution, transforms, options): a transform or a list of them
function TransformedDistribution:init(base_distribution, transforms, options)
  if not class.is_a(base_distribution, Distribution) then
    errors.blame("distributions.TransformedDistribution: base_distribution must be a distribution: "
      .. "got %s", errors.show(base_distribution))
  end
  self:_set_options(options)
  self.base_dist, self.options = base_distribution, base_distribution.options
  self.transforms = class.is_a(transforms, Transform) and { transforms } or transforms
  self.transform = ComposeTransform(self.transforms)
  self.support = self.transforms[1] and self.transform.codomain or base_distribution.support
  local shape, own = self:_transformed_shape(), #base_distribution.event_shape
  local events = math.max(own, self.transform.event_dim)
  -- `taken`: dims of the base's batch that the transforms take as dims of an event.
  self.taken, self.event_dim = events - own, events
  self.batch_shape = table.move(shape, 1, #shape - events, 1, {})
  self.event_shape = table.move(shape, #shape - events + 1, #shape, 1, {})
  self.base_dist = base_distribution:expand(table.move(shape, 1, #shape - own, 1, {}))
end

-- The shape that the transforms make of the base's.
function TransformedDistribution:_transformed_shape()
  local _ <close> = c.no_grad()
  return self.transform(c.zeros(self.base_dist:shape_of(), self.options)).shape
end

function TransformedDistribution:rsample(sample_shape)
  return self.transform(self.base_dist:rsample(sample_shape))
end

function TransformedDistribution:sample(sample_shape)
  local _ <close> = c.no_grad()
  return self.transform(self.base_dist:sample(sample_shape))
end

function TransformedDistribution:log_prob(value)
  value = self:validate_sample(value)
  local x = self.transform.inv(value)
  local change = sum_last(self.transform:log_abs_det_jacobian(x, value),
    self.event_dim - self.transform.event_dim)
  return sum_last(self.base_dist:log_prob(x), self.taken) - change
end

-- p of the base, where the transforms rise, and 1 - p where they fall.
local function by_sign(self, p)
  return self.transform.sign * (p - 0.5) + 0.5
end

function TransformedDistribution:cdf(value)
  value = self:validate_sample(value)
  return by_sign(self, self.base_dist:cdf(self.transform.inv(value)))
end

function TransformedDistribution:icdf(value)
  return self.transform(self.base_dist:icdf(by_sign(self, value)))
end

function TransformedDistribution:_kl(q)
  local same = #self.transforms == #q.transforms
  for i, transform in ipairs(self.transforms) do same = same and transform == q.transforms[i] end
  if not same then errors.blame("kl_divergence: the transforms differ") end
  return sum_last(kl_divergence(self.base_dist, q.base_dist), self.taken)
end

return TransformedDistribution
