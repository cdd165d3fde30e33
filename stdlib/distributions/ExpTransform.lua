-- stdlib/distributions/ExpTransform.lua: the transform y = exp(x).

local Transform = require "ltrain.distributions.Transform"
local constraints = require "ltrain.distributions.constraints"

local ExpTransform = Transform:extend("ExpTransform")

ExpTransform.codomain = constraints.positive

function ExpTransform:_call(x) return x:exp() end
function ExpTransform:_inverse(y) return y:log() end

--- The logarithm of dy / dx.
function ExpTransform:log_abs_det_jacobian(x, _) return x end

return ExpTransform
