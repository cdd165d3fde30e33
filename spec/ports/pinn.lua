-- spec/ports/pinn.lua: a physics-informed network: u'' = -u, u(0) = 0, u'(0) = 1.
local lt = require "ltrain"
local nn = lt.nn

local function slope(u, t) return lt.grad(u:sum(), t, {create_graph = true}) end

return function(formulas)
  local net = formulas.fill(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16),
    nn.Tanh(), nn.Linear(16, 1)))
  local t = lt.linspace(0, 2, 16):unsqueeze(2):requires_grad_()
  local start = lt.zeros(1, 1):requires_grad_()
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.01})
  return formulas.steps(optimizer, function()
    local u, u0 = net(t), net(start)
    local residual = slope(slope(u, t), t) + u
    return residual:square():mean() + u0:square():sum() + (slope(u0, start) - 1):square():sum()
  end)
end
