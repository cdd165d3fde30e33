-- spec/ports/mixture_density.lua: a mixture density network (Bishop 1994): several answers for x.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 9)))
  local y = lt.linspace(-1, 1, 24):unsqueeze(2)
  local x = y + 0.3 * (4 * y):sin()
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.02})
  return formulas.steps(optimizer, function()
    local logits, mean, log_std = table.unpack(net(x):chunk(3, 2))
    local log_p = lt.distributions.Normal(mean, log_std:exp()):log_prob(y)
    return -(logits:log_softmax(2) + log_p):logsumexp(2):mean()
  end)
end
