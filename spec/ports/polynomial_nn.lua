-- spec/ports/polynomial_nn.lua: the polynomial with nn and optim.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local x = lt.linspace(-math.pi, math.pi, 200)
  local powers = x:unsqueeze(2):pow(lt.tensor{1, 2, 3})
  local net = nn.Sequential(nn.Linear(3, 1), nn.Flatten{start_dim = 1, end_dim = 2})
  local loss_fn = nn.MSELoss{reduction = "sum"}
  local optimizer = lt.optim.RMSprop(formulas.fill(net):parameters(), {lr = 1e-2})
  return formulas.steps(optimizer, function() return loss_fn(net(powers), x:sin()) end)
end
