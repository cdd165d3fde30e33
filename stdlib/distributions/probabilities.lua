-- stdlib/distributions/probabilities.lua: distributions that are given by probabilities or logits.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = { probs = { type = "tensor|number" }, logits = { type = "tensor|number" },
  validate_args = { type = "boolean" } }

-- Probabilities whose logarithms are finite.
local EPSILON <const> = { f64 = 2.220446049250313e-16 }

local probabilities = {}

--- probs, logits and options of the arguments of a constructor: probabilities, or {probs =} or
--- {logits =}.
function probabilities.of(argument, options, where)
  if argument == nil then argument, options = options, nil end
  if type(argument) ~= "table" then return argument, nil, options end
  local o = config.check(argument, OPTIONS, where)
  if (o.probs == nil) == (o.logits == nil) then
    errors.blame("%s: either probs or logits is needed", where)
  end
  return o.probs, o.logits, { validate_args = o.validate_args }
end

--- In eps..1 - eps.
function probabilities.clamped(probs)
  local eps = EPSILON[probs.dtype] or 1.1920928955078125e-7
  return probs:clamp { min = eps, max = 1 - eps }
end

--- The parameters of a class that is given by `probs`, or by name {probs =} or {logits =}, after
--- those of `names`: each of probs and logits from the other.
function probabilities.set(self, names, values, probs, options)
  local count, all = #names, { table.unpack(names) }
  all[count + 1], all[count + 2], values[count + 1] = "probs", "logits", probs
  local where <const> = "distributions." .. getmetatable(self).__name
  values, options = self:_by_name(all, values, options)
  if options and options.logits ~= nil then
    values[count + 2], options = options.logits, { validate_args = options.validate_args }
  end
  if (values[count + 1] == nil) == (values[count + 2] == nil) then
    errors.blame("%s: either probs or logits is needed", where)
  end
  local of_logits <const> = values[count + 1] == nil
  values = table.move(values, 1, count, 1, { [count + 1] = values[count + (of_logits and 2 or 1)] })
  all[count + 1], all[count + 2] = of_logits and "logits" or "probs", nil
  self:set_parameters(all, values, options)
  if of_logits then
    self.probs = self.logits:sigmoid()
  else
    local clamped = probabilities.clamped(self.probs)
    self.logits = clamped:log() - (-clamped):log1p()
  end
end

--- The entropy of a Bernoulli trial.
function probabilities.entropy(self)
  return self.logits:softplus() - self.logits * self.probs
end

--- A tensor of what may be a number.
function probabilities.tensor(value, where, name)
  if type(value) == "number" then return c.full({}, value, { dtype = "f32" }) end
  if not c.is_tensor(value) then
    errors.blame("%s: %s must be a tensor: got %s", where, name, errors.show(value))
  end
  return value
end

return probabilities
