-- spec/ports/text_cnn.lua: convolutions over words (Kim 2014), each as wide as an embedding.
local lt = require "ltrain"
local nn = lt.nn

local TextCNN = lt.Module:extend("TextCNN")

function TextCNN:init()
  self.embedding = nn.Embedding(30, 12, {padding_idx = 0})
  self.convs = nn.ModuleList{}
  for _, words in ipairs{2, 3, 4} do self.convs:append(nn.Conv2d(1, 6, {words, 12})) end
  self.fc = nn.Linear(18, 3)
end

function TextCNN:forward(ids) -- [N, T] -> [N, 3]
  local x, pooled = self.embedding(ids):unsqueeze(2), {}
  for k, conv in ipairs(self.convs) do pooled[k] = conv(x):relu():squeeze(4):amax(3) end
  return self.fc(lt.cat(pooled, {dim = 2}))
end

return function(formulas)
  local net, words = formulas.fill(TextCNN()), formulas.ids({6, 10}, 30)
  local labels = formulas.ids({6}, 3)
  local optimizer = lt.optim.Adadelta(net:parameters(), {lr = 1.0})
  return formulas.steps(optimizer, function() return lt.cross_entropy(net(words), labels) end)
end
