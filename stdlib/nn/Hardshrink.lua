-- stdlib/nn/Hardshrink.lua: x; 0 where |x| is at most `lambd`.

local Activation = require "ltrain.nn.activation"

local Hardshrink = Activation:extend("Hardshrink")

Hardshrink.__arguments = "lambd"

Hardshrink.options = {
  lambd = { type = "number", default = 0.5 },
}
Hardshrink.order = { "lambd" }

--- nn.Hardshrink() or nn.Hardshrink(0.1)
function Hardshrink:init(lambd) self:take(lambd) end

function Hardshrink:forward(x)
  local y = x:hardshrink(self.lambd)
  return y
end

return Hardshrink
