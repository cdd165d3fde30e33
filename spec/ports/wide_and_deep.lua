-- spec/ports/wide_and_deep.lua: a linear model of all fields beside an MLP of their embeddings.
local lt = require "ltrain"
local nn = lt.nn

local Net = lt.Module:extend("Net")

function Net:init()
  self.wide = nn.Linear(9 + 3, 1)
  self.embeddings = nn.ModuleList(nn.Embedding(5, 4), nn.Embedding(4, 4))
  self.deep = nn.Sequential(nn.Linear(8 + 3, 16), nn.ReLU(), nn.Linear(16, 1))
end

function Net:forward(a, b, numbers) -- ids [N], ids [N], [N, 3] -> logits [N, 1]
  local fields = {a:one_hot(5):to "f32", b:one_hot(4):to "f32", numbers}
  local vectors = {self.embeddings[1](a), self.embeddings[2](b), numbers}
  return self.wide(lt.cat(fields, {dim = 2})) + self.deep(lt.cat(vectors, {dim = 2}))
end

return function(formulas)
  local net, a, b = formulas.fill(Net()), formulas.ids({24}, 5), formulas.ids({24}, 4, 3)
  local numbers, clicked = formulas.wave{24, 3}, formulas.ids({24, 1}, 2):to "f32"
  local optimizer = lt.optim.Adagrad(net:parameters(), {lr = 0.05})
  return formulas.steps(optimizer, function()
    return lt.binary_cross_entropy_with_logits(net(a, b, numbers), clicked)
  end)
end
