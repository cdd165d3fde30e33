-- stdlib/nn/CELU.lua: x; `alpha` (exp(x / `alpha`) - 1) where it is negative.

local Activation = require "ltrain.nn.activation"

local CELU = Activation:extend("CELU")

CELU.options = {
  alpha = { type = "number", default = 1, doc = "limit below 0 is its negative",
    check = function(alpha) return alpha == 0 and "must not be 0" or nil end },
}
CELU.order = { "alpha" }

--- nn.CELU() or nn.CELU(0.5)
function CELU:init(alpha) self:take(alpha) end

function CELU:forward(x)
  local y = x:celu(self.alpha)
  return y
end

return CELU
