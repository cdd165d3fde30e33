-- stdlib/nn/Threshold.lua: x where it is above a threshold, a value elsewhere.

local Activation = require "ltrain.nn.activation"

local Threshold = Activation:extend("Threshold")

Threshold.options = {
  threshold = { type = "number", required = true },
  value = { type = "number", required = true, doc = "in place of what is not above it" },
}
Threshold.order = { "threshold", "value" }

--- nn.Threshold(0.1, 20)
function Threshold:init(threshold, value) self:take(threshold, value) end

function Threshold:forward(x)
  local y = x:threshold(self.threshold, self.value)
  return y
end

return Threshold
