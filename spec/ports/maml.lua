-- spec/ports/maml.lua: meta-learning (Finn et al. 2017): gradients through a step of SGD, on sines.
local lt = require "ltrain"
local nn = lt.nn

local function network(x, w) -- w: weights and biases of two layers
  return lt.linear(lt.linear(x, w[1], w[2]):tanh(), w[3], w[4])
end

return function(formulas)
  local net = formulas.fill(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)))
  local weights = net:parameters()
  local optimizer = lt.optim.Adam(weights, {lr = 0.01})
  return formulas.steps(optimizer, function(step)
    local total = 0
    for task = 0, 2 do
      local x = formulas.wave({2, 8, 1}, task) * 3
      local y = (x + step + task):sin()
      local inner = lt.mse_loss(network(x[1], weights), y[1])
      local fast = lt.grad(inner, weights, {create_graph = true})
      for k, grad in ipairs(fast) do fast[k] = weights[k] - 0.1 * grad end
      total = total + lt.mse_loss(network(x[2], fast), y[2])
    end
    return total / 3
  end)
end
