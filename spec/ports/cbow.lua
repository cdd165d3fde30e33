-- spec/ports/cbow.lua: continuous bag of words: a word from the sum of those around it.
local lt = require "ltrain"
local nn = lt.nn

return function(formulas)
  local net = formulas.fill(nn.ModuleDict{embeddings = nn.Embedding(20, 8),
    linear = nn.Linear(8, 20)})
  local windows = formulas.ids({16}, 20):unfold(1, 5, 1)
  local around = windows:index_select(2, lt.tensor{0, 1, 3, 4})
  local optimizer = lt.optim.Adagrad(net:parameters(), {lr = 0.1})
  return formulas.steps(optimizer, function()
    return lt.cross_entropy(net.linear(net.embeddings(around):sum(2)), windows[{lt.all, 3}])
  end)
end
