-- stdlib/nn/ReLU6.lua: x limited to the range 0..6.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local ReLU6 = Activation:extend("ReLU6")

ReLU6.__arguments = "| inplace"

ReLU6.options = config.signature { Activation.inplace_row }

--- nn.ReLU6() or nn.ReLU6{inplace = true}
function ReLU6:init(options) self:take(options) end

function ReLU6:forward(x)
  local y = self.inplace and x:relu6_() or x:relu6()
  return y
end

return ReLU6
