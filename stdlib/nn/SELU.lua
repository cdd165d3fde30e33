-- stdlib/nn/SELU.lua: 1.0507 elu(x) with an alpha of 1.6733, which keeps mean 0 and variance 1.

local Module = require "ltrain.nn.Module"

local SELU = Module:extend("SELU")

function SELU:forward(x)
  local y = x:selu()
  return y
end

return SELU
