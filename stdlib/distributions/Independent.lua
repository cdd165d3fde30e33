-- stdlib/distributions/Independent.lua: reinterprets the last batch dims of a distribution as event
-- dims.

local Distribution = require "ltrain.distributions.Distribution"
local class = require "ltrain.core.class"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local kl_divergence = require "ltrain.distributions.kl_divergence"
local sum_last = require "ltrain.distributions.sum_last"

local Independent = Distribution:extend("Independent")

Independent.__arguments = "base_distribution reinterpreted_batch_ndims | validate_args"

--- Independent(base_distribution, reinterpreted_batch_ndims, options)
function Independent:init(base_distribution, reinterpreted_batch_ndims, options)
  local where <const> = "distributions.Independent"
  if not class.is_a(base_distribution, Distribution) then
    errors.blame("%s: base_distribution must be a distribution: got %s", where,
      errors.show(base_distribution))
  end
  local batch = base_distribution.batch_shape
  local n = config.argument(reinterpreted_batch_ndims, "integer", where,
    "reinterpreted_batch_ndims", { min = 0 })
  if n > #batch then
    errors.blame("%s: reinterpreted_batch_ndims is above the number of batch dims: %d, of %s",
      where, n, errors.show(batch))
  end
  self:_set_options(options)
  self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
  self.support, self.options = base_distribution.support, base_distribution.options
  self.batch_shape = table.move(batch, 1, #batch - n, 1, {})
  self.event_shape = table.move(batch, #batch - n + 1, #batch, 1, {})
  local event = base_distribution.event_shape
  table.move(event, 1, #event, n + 1, self.event_shape)
end

for _, name in ipairs { "_mean", "_mode", "_variance" } do
  Independent[name] = function(self) return self.base_dist[name:sub(2)] end
end

function Independent:rsample(sample_shape) return self.base_dist:rsample(sample_shape) end
function Independent:sample(sample_shape) return self.base_dist:sample(sample_shape) end

function Independent:log_prob(value)
  return sum_last(self.base_dist:log_prob(value), self.reinterpreted_batch_ndims)
end

function Independent:entropy()
  return sum_last(self.base_dist:entropy(), self.reinterpreted_batch_ndims)
end

function Independent:_kl(q)
  if self.reinterpreted_batch_ndims ~= q.reinterpreted_batch_ndims then
    errors.blame("kl_divergence: reinterpreted_batch_ndims differ: %d and %d",
      self.reinterpreted_batch_ndims, q.reinterpreted_batch_ndims)
  end
  return sum_last(kl_divergence(self.base_dist, q.base_dist), self.reinterpreted_batch_ndims)
end

return Independent
