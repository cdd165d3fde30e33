-- stdlib/nn/CELU.lua: x; `alpha` (exp(x / `alpha`) - 1) where it is negative.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local CELU = Activation:extend("CELU")

CELU.__arguments = "alpha | inplace"

CELU.options = config.signature {
  { "alpha", type = "number", default = 1, doc = "negative saturation value",
    check = function(alpha) return alpha == 0 and "must not be 0" or nil end },
  Activation.inplace_row,
}

--- nn.CELU() or nn.CELU(0.5)
function CELU:init(alpha, options) self:take(alpha, options) end

function CELU:forward(x)
  local y = self.inplace and x:celu_(self.alpha) or x:celu(self.alpha)
  return y
end

return CELU
