-- stdlib/nn/Mish.lua: x * tanh(softplus(x)).

local Module = require "ltrain.nn.Module"

local Mish = Module:extend("Mish")

function Mish:forward(x)
  local y = x:mish()
  return y
end

return Mish
