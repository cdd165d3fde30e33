-- stdlib/nn/SiLU.lua: x * sigmoid(x).

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local SiLU = Activation:extend("SiLU")

SiLU.__arguments = "| inplace"

SiLU.options = config.signature { Activation.inplace_row }

--- nn.SiLU() or nn.SiLU{inplace = true}
function SiLU:init(options) self:take(options) end

function SiLU:forward(x)
  local y = self.inplace and x:silu_() or x:silu()
  return y
end

return SiLU
