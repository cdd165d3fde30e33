-- stdlib/nn/ReLU6.lua: x limited to the range 0..6.

local Module = require "ltrain.nn.Module"

local ReLU6 = Module:extend("ReLU6")

function ReLU6:forward(x)
  local y = x:relu6()
  return y
end

return ReLU6
