-- stdlib/distributions/SigmoidTransform.lua: the transform y = 1 / (1 + exp(-x)).

local Transform = require "ltrain.distributions.Transform"
local constraints = require "ltrain.distributions.constraints"
local probs_or_logits = require "ltrain.distributions.probs_or_logits"

local SigmoidTransform = Transform:extend("SigmoidTransform")

SigmoidTransform.codomain = constraints.unit_interval

function SigmoidTransform:_call(x) return probs_or_logits.clamped(x:sigmoid()) end

function SigmoidTransform:_inverse(y)
  y = probs_or_logits.clamped(y)
  return y:log() - (-y):log1p()
end

--- The logarithm of dy / dx.
function SigmoidTransform:log_abs_det_jacobian(x, _)
  return -(-x):softplus() - x:softplus()
end

return SigmoidTransform
