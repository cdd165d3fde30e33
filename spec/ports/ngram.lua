-- spec/ports/ngram.lua: Word embeddings: an n-gram language model (two words before).
local lt = require "ltrain"
local nn = lt.nn

local NGram = lt.Module:extend("NGram")

function NGram:init()
  self.embeddings = nn.Embedding(20, 8)
  self.linear1 = nn.Linear(16, 32)
  self.linear2 = nn.Linear(32, 20)
end

function NGram:forward(words) -- [N, 2] -> [N, V]
  local x = self.embeddings(words):flatten(2)
  local log_p = self.linear2(self.linear1(x):relu()):log_softmax(2)
  return log_p
end

return function(formulas)
  local net, text = formulas.fill(NGram()), formulas.ids({14}, 20)
  local windows = text:unfold(1, 3, 1)
  local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.1})
  return formulas.steps(optimizer, function()
    return lt.nll_loss(net(windows[{lt.all, {1, 2}}]), windows[{lt.all, 3}])
  end)
end
