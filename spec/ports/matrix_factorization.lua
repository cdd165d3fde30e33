-- spec/ports/matrix_factorization.lua: recommendations: users times items, and what each adds.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.ModuleDict{user = nn.Embedding(12, 4), item = nn.Embedding(15, 4),
    user_bias = nn.Embedding(12, 1), item_bias = nn.Embedding(15, 1)})
  local user, item = formulas.ids({40}, 12), formulas.ids({40}, 15, 4)
  local rating = formulas.ids({40}, 5, 2) + 1.0
  local optimizer = lt.optim.Adamax(net:parameters(), {lr = 0.05, weight_decay = 1e-5})
  return formulas.steps(optimizer, function()
    local score = (net.user(user) * net.item(item)):sum(2)
    score = score + net.user_bias(user):squeeze(2) + net.item_bias(item):squeeze(2)
    return lt.mse_loss(score, rating)
  end)
end
