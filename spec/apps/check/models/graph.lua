-- spec/apps/check/models/graph.lua: a graph network: all nodes of one graph are one batch.
local lt = require "ltrain"
local nn = lt.nn
local Graph = lt.Module:extend "Graph"
function Graph:init()
  self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 3)
end
function Graph:forward(x, near)
  local hidden = near:matmul(self.first(x)):relu()
  local logits = near:matmul(self.second(hidden))
  return logits
end
function Graph:training_step(batch)
  local logits = self(batch.x, batch.near)
  return lt.cross_entropy(logits[batch.known], batch.labels[batch.known])
end
function Graph:configure_optimizers()
  return lt.optim.Adam(self:parameters(), { lr = 0.01, weight_decay = 5e-4 })
end
local near = lt.rand(40, 40):gt(0.9):float()
near = (near + near:t()):clamp { max = 1 } + lt.eye(40)
near = near / near:sum(2, { keepdim = true })
local graph = { x = lt.randn(40, 8), near = near, labels = lt.randint(0, 3, { 40 }),
  known = lt.arange(0, 20) }
return { model = Graph(), data = { train = function()
  local done = false
  return function()
    if done then return nil end
    done = true
    return graph
  end
end }, trainer = { max_epochs = 100 } }
