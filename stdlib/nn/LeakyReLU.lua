-- stdlib/nn/LeakyReLU.lua: x; times `negative_slope` where it is negative.

local Activation = require "ltrain.nn.activation"

local LeakyReLU = Activation:extend("LeakyReLU")

LeakyReLU.options = {
  negative_slope = { type = "number", default = 0.01, doc = "slope below 0" },
}
LeakyReLU.order = { "negative_slope" }

--- nn.LeakyReLU(0.2) or nn.LeakyReLU{negative_slope = 0.2}
function LeakyReLU:init(negative_slope) self:take(negative_slope) end

function LeakyReLU:forward(x)
  local y = x:leaky_relu(self.negative_slope)
  return y
end

return LeakyReLU
