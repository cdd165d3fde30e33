-- stdlib/distributions/probs_or_logits.lua: the parameters of distributions that take probabilities
-- or logits.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = { logits = { type = "tensor|number" },
  validate_args = { type = "boolean" } }

-- Probabilities whose logarithms are finite.
local EPSILON <const> = { f64 = 2.220446049250313e-16 }

local probs_or_logits = {}

--- The logits and further options of a constructor that gets `probs`, or the option `logits`.
function probs_or_logits.logits(probs, options, where)
  local o = config.check(options, OPTIONS, where)
  if (probs == nil) == (o.logits == nil) then
    errors.blame("%s: either probs or logits is needed", where)
  end
  return o.logits, { validate_args = o.validate_args }
end

--- In eps..1 - eps.
function probs_or_logits.clamped(probs)
  local eps = EPSILON[probs.dtype] or 1.1920928955078125e-7
  return probs:clamp { min = eps, max = 1 - eps }
end

--- The parameters of a class that is given by `probs`, or by name {probs =} or {logits =}, after
--- those of `names`: each of probs and logits from the other.
function probs_or_logits.set(self, names, values, probs, options)
  local count, all = #names, { table.unpack(names) }
  local logits
  logits, options = probs_or_logits.logits(probs, options,
    "distributions." .. getmetatable(self).__name)
  all[count + 1], values[count + 1] = logits ~= nil and "logits" or "probs", logits or probs
  self:set_parameters(all, values, options)
  if logits ~= nil then
    self.probs = self.logits:sigmoid()
  else
    local clamped = probs_or_logits.clamped(self.probs)
    self.logits = clamped:log() - (-clamped):log1p()
  end
end

--- The entropy of a Bernoulli trial.
function probs_or_logits.entropy(self)
  return self.logits:softplus() - self.logits * self.probs
end

--- A tensor of what may be a number.
function probs_or_logits.tensor(value, where, name)
  if type(value) == "number" then return c.full({}, value, { dtype = "f32" }) end
  if not c.is_tensor(value) then
    errors.blame("%s: %s must be a tensor: got %s", where, name, errors.show(value))
  end
  return value
end

return probs_or_logits
