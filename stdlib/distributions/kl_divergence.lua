-- stdlib/distributions/kl_divergence.lua: the Kullback-Leibler divergence of two distributions.

local class = require "ltrain.core.class"
local Distribution = require "ltrain.distributions.Distribution"
local errors = require "ltrain.core.errors"

--- KL(p || q), in nats, of two distributions of one class.
return function(p, q)
  if not (class.is_a(p, Distribution) and class.is_a(q, Distribution)) then
    errors.blame("kl_divergence: two distributions are needed: got %s and %s", errors.show(p),
      errors.show(q))
  elseif class.of(p) ~= class.of(q) or not p._kl then
    errors.blame("kl_divergence: it is not known between %s and %s", errors.show(p),
      errors.show(q))
  end
  return p:_kl(q)
end
