-- stdlib/nn/Mish.lua: x * tanh(softplus(x)).

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local Mish = Activation:extend("Mish")

Mish.__arguments = "| inplace"

Mish.options = config.signature { Activation.inplace_row }

--- nn.Mish() or nn.Mish{inplace = true}
function Mish:init(options) self:take(options) end

function Mish:forward(x)
  local y = self.inplace and x:mish_() or x:mish()
  return y
end

return Mish
