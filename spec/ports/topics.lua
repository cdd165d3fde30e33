-- spec/ports/topics.lua: topics of texts of any length, by the mean of their words' vectors.
local lt = require "ltrain"
local nn = lt.nn

local Net = lt.Module:extend("Net")

function Net:init() self.bag, self.head = nn.EmbeddingBag(40, 8), nn.Linear(8, 4) end

function Net:forward(words, begins) return self.head(self.bag(words, begins)) end

return function(formulas)
  local net, words = formulas.fill(Net()), formulas.ids({30}, 40)
  local begins, y = lt.tensor({0, 4, 11, 12, 20}, {dtype = "i64"}), formulas.ids({5}, 4)
  local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.5})
  return formulas.steps(optimizer, function() return lt.cross_entropy(net(words, begins), y) end)
end
