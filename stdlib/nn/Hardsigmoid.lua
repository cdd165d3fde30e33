-- stdlib/nn/Hardsigmoid.lua: (x + 3) / 6, limited to the range 0..1.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local Hardsigmoid = Activation:extend("Hardsigmoid")

Hardsigmoid.__arguments = "| inplace"

Hardsigmoid.options = config.signature { Activation.inplace_row }

--- nn.Hardsigmoid() or nn.Hardsigmoid{inplace = true}
function Hardsigmoid:init(options) self:take(options) end

function Hardsigmoid:forward(x)
  local y = self.inplace and x:hardsigmoid_() or x:hardsigmoid()
  return y
end

return Hardsigmoid
