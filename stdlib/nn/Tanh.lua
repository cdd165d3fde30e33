-- stdlib/nn/Tanh.lua: the hyperbolic tangent.

local Module = require "ltrain.nn.Module"

local Tanh = Module:extend("Tanh")

function Tanh:forward(x)
  local y = x:tanh()
  return y
end

return Tanh
