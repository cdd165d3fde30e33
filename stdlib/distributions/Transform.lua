-- stdlib/distributions/Transform.lua: the base class of invertible functions of tensors, for
-- TransformedDistribution.
--
--   local lt = require "ltrain"
--   local exp = lt.distributions.ExpTransform()
--   print(exp(lt.tensor{ 0.0 })[1]:item(), exp.inv(lt.tensor{ 1.0 })[1]:item())
--   -- prints: 1.0	0.0
--
-- A subclass has `_call(x)`, `_inverse(y)` and `log_abs_det_jacobian(x, y)`; `sign`, the sign of
-- the derivative, 1 or -1, as a number or a tensor; `event_dim`, the number of event dims; `domain`
-- and `codomain`, rows of constraints.lua.

local class = require "ltrain.core.class"
local constraints = require "ltrain.distributions.constraints"

local Transform = class.extend(nil, "Transform")

Transform.event_dim, Transform.sign = 0, 1
Transform.domain, Transform.codomain = constraints.real, constraints.real

Transform.extend = class.extend

-- The inverse of a transform, its field `inv`.
local Inverse = Transform:extend("InverseTransform")

function Transform:__construct()
  self.inv = setmetatable({ inv = self }, Inverse)
end

function Transform:__call(x) return self:_call(x) end

Inverse.__call = Transform.__call

function Inverse:__index(key)
  local own = rawget(self, "inv")
  if key == "domain" then return own.codomain end
  if key == "codomain" then return own.domain end
  if key == "sign" or key == "event_dim" then return own[key] end
  return Inverse[key]
end

function Inverse:_call(y) return self.inv:_inverse(y) end
function Inverse:_inverse(x) return self.inv:_call(x) end
function Inverse:log_abs_det_jacobian(x, y) return -self.inv:log_abs_det_jacobian(y, x) end

return Transform
