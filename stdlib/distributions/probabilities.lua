-- stdlib/distributions/probabilities.lua: distributions that are given by probabilities or logits.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local OPTIONS <const> = { probs = { type = "tensor|number" }, logits = { type = "tensor|number" } }

-- Probabilities whose logarithms are finite.
local EPSILON <const> = { f64 = 2.220446049250313e-16 }

local probabilities = {}

--- probs and logits of the argument of a constructor: probabilities, or {probs =} or {logits =}.
function probabilities.of(argument, where)
  if type(argument) ~= "table" then return argument, nil end
  local o = config.check(argument, OPTIONS, where)
  if (o.probs == nil) == (o.logits == nil) then
    errors.blame("%s: either probs or logits is needed", where)
  end
  return o.probs, o.logits
end

--- In eps..1 - eps.
function probabilities.clamped(probs)
  local eps = EPSILON[probs.dtype] or 1.1920928955078125e-7
  return probs:clamp { min = eps, max = 1 - eps }
end

--- log(1 + exp(x)), without overflow.
function probabilities.softplus(x)
  return x:relu() + (-x:abs()):exp():log1p()
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
