-- stdlib/nn/Hardswish.lua: x * hardsigmoid(x).

local Module = require "ltrain.nn.Module"

local Hardswish = Module:extend("Hardswish")

function Hardswish:forward(x)
  local y = x:hardswish()
  return y
end

return Hardswish
