-- spec/ports/gat.lua: graph attention: neighbours weighed by a softmax over edges.
local lt = require "ltrain"
local nn = lt.nn

local Layer = lt.Module:extend("Layer")

function Layer:init(width_in, width)
  self.W = nn.Linear(width_in, width, {bias = false})
  self.source, self.target = nn.Linear(width, 1), nn.Linear(width, 1)
end

function Layer:forward(x, edges) -- [N, I], [N, N] -> [N, O]
  local h = self.W(x)
  local scores = (self.source(h) + self.target(h):t()):leaky_relu(0.2)
  return scores:masked_fill(~edges, -math.huge):softmax(2):matmul(h)
end

return function(formulas)
  local net = formulas.fill(nn.ModuleList(Layer(6, 8), Layer(8, 3)))
  local edges, x, y = formulas.graph(12):to "bool", formulas.wave{12, 6}, formulas.ids({12}, 3)
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.02})
  return formulas.steps(optimizer, function()
    return lt.cross_entropy(net[2](net[1](x, edges):elu(), edges), y)
  end)
end
