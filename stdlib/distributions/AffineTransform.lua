-- stdlib/distributions/AffineTransform.lua: the transform y = loc + scale * x.

local Transform = require "ltrain.distributions.Transform"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local sum_last = require "ltrain.distributions.sum_last"

local AffineTransform = Transform:extend("AffineTransform")

--- AffineTransform(loc, scale, event_dim): tensors or numbers; event_dim (0): the number of event
--- dims
function AffineTransform:init(loc, scale, event_dim)
  local where <const> = "distributions.AffineTransform"
  if type(loc) == "table" and scale == nil then
    local o = config.check(loc, { loc = { type = "tensor|number", required = true },
      scale = { type = "tensor|number", required = true },
      event_dim = { type = "integer", min = 0 } }, where)
    loc, scale, event_dim = o.loc, o.scale, o.event_dim
  end
  self.loc = config.argument(loc, "tensor|number", where, "loc")
  self.scale = config.argument(scale, "tensor|number", where, "scale")
  self.event_dim = config.argument(event_dim or 0, "integer", where, "event_dim", { min = 0 })
  local is_tensor = c.is_tensor(scale)
  if is_tensor then self.sign = scale:sign() else self.sign = scale < 0 and -1 or 1 end
end

function AffineTransform:_call(x) return self.loc + x * self.scale end
function AffineTransform:_inverse(y) return (y - self.loc) / self.scale end

--- log |scale|, in the shape of x without its event dims.
function AffineTransform:log_abs_det_jacobian(x, _)
  local size = c.is_tensor(self.scale) and self.scale:abs():log() or math.log(math.abs(self.scale))
  return sum_last(x * 0 + size, self.event_dim)
end

return AffineTransform
