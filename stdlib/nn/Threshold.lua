-- stdlib/nn/Threshold.lua: x where it is above a threshold, else a value.

local Activation = require "ltrain.nn.activation"

local Threshold = Activation:extend("Threshold")

Threshold.__arguments = "threshold value | inplace"

Threshold.options = {
  threshold = { type = "number", required = true },
  value = { type = "number", required = true, doc = "replaces elements that are not above it" },
  inplace = Activation.inplace_row,
}
Threshold.order = { "threshold", "value" }

--- nn.Threshold(0.1, 20)
function Threshold:init(threshold, value, options) self:take(threshold, value, options) end

function Threshold:forward(x)
  local y = self.inplace and x:threshold_(self.threshold, self.value)
    or x:threshold(self.threshold, self.value)
  return y
end

return Threshold
