-- spec/ports/averaged.lua: an exponential moving average of the weights; its loss after each step.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)))
  local x, losses = formulas.wave{16, 4}, {}
  local y = x:prod(2, {keepdim = true}) + x:sum(2, {keepdim = true})
  local average = lt.optim.AveragedModel(net, {decay = 0.8})
  local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.05})
  for step = 1, 20 do
    optimizer:zero_grad()
    lt.mse_loss(net(x), y):backward()
    optimizer:step()
    average:update_parameters(net)
    losses[step] = lt.mse_loss(average(x), y):item()
  end
  return losses
end
