-- stdlib/nn/ELU.lua: x; `alpha` (exp(x) - 1) where it is negative.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local ELU = Activation:extend("ELU")

ELU.__arguments = "alpha | inplace"

ELU.options = config.signature {
  { "alpha", type = "number", default = 1, doc = "negative saturation value" },
  Activation.inplace_row,
}

--- nn.ELU() or nn.ELU(0.5)
function ELU:init(alpha, options) self:take(alpha, options) end

function ELU:forward(x)
  local y = self.inplace and x:elu_(self.alpha) or x:elu(self.alpha)
  return y
end

return ELU
