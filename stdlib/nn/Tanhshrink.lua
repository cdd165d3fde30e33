-- stdlib/nn/Tanhshrink.lua: x - tanh(x).

local Module = require "ltrain.nn.Module"

local Tanhshrink = Module:extend("Tanhshrink")

function Tanhshrink:forward(x)
  local y = x:tanhshrink()
  return y
end

return Tanhshrink
