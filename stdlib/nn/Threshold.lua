-- stdlib/nn/Threshold.lua: x where it is above a threshold, else a value.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local Threshold = Activation:extend("Threshold")

Threshold.__arguments = "threshold value | inplace"

Threshold.options = config.signature {
  { "threshold", type = "number", required = true },
  { "value", type = "number", required = true, doc = "replaces elements that are not above it" },
  Activation.inplace_row,
}

--- nn.Threshold(0.1, 20)
function Threshold:init(threshold, value, options) self:take(threshold, value, options) end

function Threshold:forward(x)
  local y = self.inplace and x:threshold_(self.threshold, self.value)
    or x:threshold(self.threshold, self.value)
  return y
end

return Threshold
