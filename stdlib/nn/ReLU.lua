-- stdlib/nn/ReLU.lua: max(x, 0).

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local ReLU = Activation:extend("ReLU")

ReLU.__arguments = "| inplace"

ReLU.options = config.signature { Activation.inplace_row }

--- nn.ReLU() or nn.ReLU{inplace = true}
function ReLU:init(options) self:take(options) end

function ReLU:forward(x)
  local y = self.inplace and x:relu_() or x:relu()
  return y
end

return ReLU
