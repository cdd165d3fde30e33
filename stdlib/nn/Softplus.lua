-- stdlib/nn/Softplus.lua: log(1 + exp(`beta` x)) / `beta`; x where `beta` x > `threshold`.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local Softplus = Activation:extend("Softplus")

Softplus.__arguments = "beta threshold"

Softplus.options = config.signature {
  { "beta", type = "number", default = 1 },
  { "threshold", type = "number", default = 20, doc = "of `beta` x, beyond which x is the result" },
}

--- nn.Softplus() or nn.Softplus{beta = 2}
function Softplus:init(beta, threshold) self:take(beta, threshold) end

function Softplus:forward(x)
  local y = x:softplus(self.beta, self.threshold)
  return y
end

return Softplus
