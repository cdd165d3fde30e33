-- stdlib/distributions/ComposeTransform.lua: a composition of transforms.

local Transform = require "ltrain.distributions.Transform"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local sum_last = require "ltrain.distributions.sum_last"

local ComposeTransform = Transform:extend("ComposeTransform")

--- ComposeTransform(parts): a list of transforms, applied in order
function ComposeTransform:init(parts)
  self.parts = {}
  for i, part in ipairs(type(parts) == "table" and parts or {}) do
    if not class.is_a(part, Transform) then
      errors.blame("distributions.ComposeTransform: part %d is not a transform: got %s", i,
        errors.show(part))
    end
    self.parts[i] = part
    self.event_dim, self.sign = math.max(self.event_dim, part.event_dim), self.sign * part.sign
  end
  if type(parts) ~= "table" or getmetatable(parts) then
    errors.blame("distributions.ComposeTransform: parts must be a list of transforms: got %s",
      errors.show(parts))
  end
  local first, last = self.parts[1], self.parts[#self.parts]
  if first then self.domain, self.codomain = first.domain, last.codomain end
end

function ComposeTransform:_call(x)
  for _, part in ipairs(self.parts) do x = part(x) end
  return x
end

function ComposeTransform:_inverse(y)
  for i = #self.parts, 1, -1 do y = self.parts[i].inv(y) end
  return y
end

--- The sum over the parts.
function ComposeTransform:log_abs_det_jacobian(x, _)
  local sum = sum_last(x * 0, self.event_dim)
  for _, part in ipairs(self.parts) do
    local y = part(x)
    sum = sum + sum_last(part:log_abs_det_jacobian(x, y), self.event_dim - part.event_dim)
    x = y
  end
  return sum
end

return ComposeTransform
