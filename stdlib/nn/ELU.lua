-- stdlib/nn/ELU.lua: x; `alpha` (exp(x) - 1) where it is negative.

local Activation = require "ltrain.nn.activation"

local ELU = Activation:extend("ELU")

ELU.options = {
  alpha = { type = "number", default = 1, doc = "limit below 0 is its negative" },
}
ELU.order = { "alpha" }

--- nn.ELU() or nn.ELU(0.5)
function ELU:init(alpha) self:take(alpha) end

function ELU:forward(x)
  local y = x:elu(self.alpha)
  return y
end

return ELU
