-- spec/ports/lbfgs.lua: a small fit by L-BFGS with line search.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)))
  local x, losses = lt.linspace(-3, 3, 32):unsqueeze(2), {}
  local optimizer = lt.optim.LBFGS(net:parameters(),
    {max_iter = 1, line_search_fn = "strong_wolfe"})
  for step = 1, 20 do
    local loss = optimizer:step(function()
      optimizer:zero_grad()
      local loss = lt.mse_loss(net(x), x:sin())
      loss:backward()
      return loss
    end)
    losses[step] = loss:item()
  end
  return losses
end
