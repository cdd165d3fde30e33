-- stdlib/nn/SELU.lua: 1.0507 elu(x) with an alpha of 1.6733, which keeps mean 0 and variance 1.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local SELU = Activation:extend("SELU")

SELU.__arguments = "| inplace"

SELU.options = config.signature { Activation.inplace_row }

--- nn.SELU() or nn.SELU{inplace = true}
function SELU:init(options) self:take(options) end

function SELU:forward(x)
  local y = self.inplace and x:selu_() or x:selu()
  return y
end

return SELU
