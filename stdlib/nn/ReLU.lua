-- stdlib/nn/ReLU.lua: max(x, 0).

local Module = require "ltrain.nn.Module"

local ReLU = Module:extend("ReLU")

function ReLU:forward(x)
  local y = x:relu()
  return y
end

return ReLU
