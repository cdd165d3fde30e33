-- spec/ports/neural_ode.lua: a neural ODE by four steps of Runge-Kutta.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local f = formulas.fill(nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)))
  local x, h = formulas.wave{12, 2}, 0.25
  local turned = x:matmul(lt.tensor{{0.0, 1.0}, {-1.0, 0.0}})
  local optimizer = lt.optim.Adam(f:parameters(), {lr = 0.02})
  return formulas.steps(optimizer, function()
    local y = x
    for _ = 1, 4 do
      local k1 = f(y)
      local k2 = f(y + h / 2 * k1)
      local k3 = f(y + h / 2 * k2)
      local k4 = f(y + h * k3)
      y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    end
    return lt.mse_loss(y, turned)
  end)
end
