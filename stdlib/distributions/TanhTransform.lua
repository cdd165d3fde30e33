-- stdlib/distributions/TanhTransform.lua: the transform y = tanh(x).

local Transform = require "ltrain.distributions.Transform"
local constraints = require "ltrain.distributions.constraints"

local TanhTransform = Transform:extend("TanhTransform")

TanhTransform.codomain = constraints.tanh_range

function TanhTransform:_call(x) return x:tanh() end
function TanhTransform:_inverse(y) return (y:log1p() - (-y):log1p()) / 2 end

--- The logarithm of dy / dx.
function TanhTransform:log_abs_det_jacobian(x, _)
  return 2 * (math.log(2) - x - (-2 * x):softplus())
end

return TanhTransform
