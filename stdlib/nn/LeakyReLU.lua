-- stdlib/nn/LeakyReLU.lua: x; times `negative_slope` where it is negative.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local LeakyReLU = Activation:extend("LeakyReLU")

LeakyReLU.__arguments = "negative_slope | inplace"

LeakyReLU.options = config.signature {
  { "negative_slope", type = "number", default = 0.01, doc = "slope below 0" },
  Activation.inplace_row,
}

--- nn.LeakyReLU(0.2) or nn.LeakyReLU(0.2, {inplace = true})
function LeakyReLU:init(negative_slope, options) self:take(negative_slope, options) end

function LeakyReLU:forward(x)
  local y = self.inplace and x:leaky_relu_(self.negative_slope) or x:leaky_relu(self.negative_slope)
  return y
end

return LeakyReLU
