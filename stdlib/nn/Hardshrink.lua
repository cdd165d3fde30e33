-- stdlib/nn/Hardshrink.lua: x; 0 where |x| is at most `lambd`.

local Activation = require "ltrain.nn.activation"
local config = require "ltrain.core.config"

local Hardshrink = Activation:extend("Hardshrink")

Hardshrink.__arguments = "lambd"

Hardshrink.options = config.signature {
  { "lambd", type = "number", default = 0.5 },
}

--- nn.Hardshrink() or nn.Hardshrink(0.1)
function Hardshrink:init(lambd) self:take(lambd) end

function Hardshrink:forward(x)
  local y = x:hardshrink(self.lambd)
  return y
end

return Hardshrink
