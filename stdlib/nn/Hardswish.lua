-- stdlib/nn/Hardswish.lua: x * hardsigmoid(x).

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local Hardswish = Activation:extend("Hardswish")

Hardswish.__arguments = "| inplace"

Hardswish.options = config.signature { Activation.inplace_row }

--- nn.Hardswish() or nn.Hardswish{inplace = true}
function Hardswish:init(options) self:take(options) end

function Hardswish:forward(x)
  local y = self.inplace and x:hardswish_() or x:hardswish()
  return y
end

return Hardswish
