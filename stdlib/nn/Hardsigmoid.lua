-- stdlib/nn/Hardsigmoid.lua: (x + 3) / 6, limited to the range 0..1.

local Module = require "ltrain.nn.Module"

local Hardsigmoid = Module:extend("Hardsigmoid")

function Hardsigmoid:forward(x)
  local y = x:hardsigmoid()
  return y
end

return Hardsigmoid
