-- spec/ports/gcn.lua: graph convolutions (Kipf and Welling 2017) by a normalized adjacency matrix.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.ModuleList(nn.Linear(6, 16), nn.Linear(16, 3)))
  local edges, x, y = formulas.graph(12), formulas.wave{12, 6}, formulas.ids({12}, 3)
  local degree = edges:sum(2):rsqrt()
  local a = degree:unsqueeze(2) * edges * degree
  local known = lt.arange(12):lt(8)
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.02, weight_decay = 5e-4})
  return formulas.steps(optimizer, function()
    local h = a:matmul(net[1](x)):relu()
    local log_p = a:matmul(net[2](h)):log_softmax(2)
    return lt.nll_loss(log_p[known], y[known])
  end)
end
