-- stdlib/optim/MultiplicativeLR.lua: multiplies the learning rate at each step by a function of the
-- number of steps.

local LambdaLR = require "ltrain.optim.LambdaLR"

local MultiplicativeLR = LambdaLR:extend("MultiplicativeLR")

-- MultiplicativeLR(optimizer, function(n) return 0.95 end): init is LambdaLR's.

function MultiplicativeLR:rate(base, n, index)
  local product = 1.0
  for k = 1, n do product = product * self:factor(k, index) end
  return base * product
end

return MultiplicativeLR
