-- stdlib/nn/Softshrink.lua: x, moved by `lambd` towards 0; 0 where it is nearer.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local Softshrink = Activation:extend("Softshrink")

Softshrink.__arguments = "lambd"

Softshrink.options = config.signature {
  { "lambd", type = "number", default = 0.5, min = 0 },
}

--- nn.Softshrink() or nn.Softshrink(0.1)
function Softshrink:init(lambd) self:take(lambd) end

function Softshrink:forward(x)
  local y = x:softshrink(self.lambd)
  return y
end

return Softshrink
