-- stdlib/nn/Sigmoid.lua: the logistic function 1 / (1 + exp(-x)).

local Module = require "ltrain.nn.Module"

local Sigmoid = Module:extend("Sigmoid")

function Sigmoid:forward(x)
  local y = x:sigmoid()
  return y
end

return Sigmoid
