-- stdlib/distributions/SigmoidTransform.lua: the transform y = 1 / (1 + exp(-x)).

local Transform = require "ltrain.distributions.Transform"
local constraints = require "ltrain.distributions.constraints"
local probabilities = require "ltrain.distributions.probabilities"

local SigmoidTransform = Transform:extend("SigmoidTransform")

SigmoidTransform.codomain = constraints.unit_interval

function SigmoidTransform:_call(x) return probabilities.clamped(x:sigmoid()) end

function SigmoidTransform:_inverse(y)
  y = probabilities.clamped(y)
  return y:log() - (-y):log1p()
end

--- The logarithm of dy / dx.
function SigmoidTransform:log_abs_det_jacobian(x, _)
  return -(-x):softplus() - x:softplus()
end

return SigmoidTransform
