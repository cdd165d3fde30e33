-- stdlib/nn/Sigmoid.lua: the logistic function.

local Module = require "ltrain.nn.Module"

local Sigmoid = Module:extend("Sigmoid")

function Sigmoid:forward(x)
  local y = x:sigmoid()
  return y
end

return Sigmoid
