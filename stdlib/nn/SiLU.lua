-- stdlib/nn/SiLU.lua: x * sigmoid(x).

local Module = require "ltrain.nn.Module"

local SiLU = Module:extend("SiLU")

function SiLU:forward(x)
  local y = x:silu()
  return y
end

return SiLU
