-- spec/ports/deep_fm.lua: DeepFM: products of all pairs of fields by a sum of squares, and an MLP.
local lt = require "ltrain"
local nn = lt.nn

local DeepFM = lt.Module:extend("DeepFM")

function DeepFM:init()
  self.linear, self.embedding = nn.Embedding(20, 1), nn.Embedding(20, 4)
  self.mlp = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1))
end

function DeepFM:forward(fields) -- ids [N, 3] -> probabilities [N, 1]
  local v = self.embedding(fields)
  local pairs_ = 0.5 * (v:sum(2):square() - v:square():sum(2)):sum(2, {keepdim = true})
  return (self.linear(fields):sum(2) + pairs_ + self.mlp(v:flatten(2))):sigmoid()
end

return function(formulas)
  local net = formulas.fill(DeepFM())
  local fields = formulas.ids({24, 3}, 6) + lt.tensor{0, 6, 12}
  local clicked = formulas.ids({24, 1}, 2):to "f32"
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.02})
  return formulas.steps(optimizer, function()
    return lt.binary_cross_entropy(net(fields), clicked)
  end)
end
