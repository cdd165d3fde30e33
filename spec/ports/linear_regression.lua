-- spec/ports/linear_regression.lua: least squares by gradient descent.
local lt = require "ltrain"

return function(formulas)
  local net, x = formulas.fill(lt.nn.Linear(3, 1)), formulas.wave{16, 3}
  local y = x:matmul(lt.tensor{{1.0}, {-2.0}, {0.5}}) + 0.3
  local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.1})
  return formulas.steps(optimizer, function() return lt.mse_loss(net(x), y) end)
end
