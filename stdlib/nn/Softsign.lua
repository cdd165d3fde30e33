-- stdlib/nn/Softsign.lua: x / (1 + |x|).

local Module = require "ltrain.nn.Module"

local Softsign = Module:extend("Softsign")

function Softsign:forward(x)
  local y = x:softsign()
  return y
end

return Softsign
