-- spec/ports/lstm_tagger.lua: an LSTM tagger, on sentences of different lengths.
local lt = require "ltrain"
local nn = lt.nn

local Tagger = lt.Module:extend("Tagger")

function Tagger:init()
  self.word_embeddings = nn.Embedding(25, 8)
  self.lstm = nn.LSTM(8, 8, {bidirectional = true})
  self.hidden2tag = nn.Linear(16, 4)
end

function Tagger:forward(words, lengths) -- ids [N, T], [N] -> [N, T, 4]
  local y = self.lstm(self.word_embeddings(words), nil, {lengths = lengths})
  return self.hidden2tag(y)
end

return function(formulas)
  local net, words = formulas.fill(Tagger()), formulas.ids({4, 6}, 25)
  local lengths = lt.tensor{6, 3, 5, 2}
  local beyond = lt.arange(6):ge(lengths:unsqueeze(2))
  local tags = formulas.ids({4, 6}, 4, 5):masked_fill(beyond, -100)
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.02})
  return formulas.steps(optimizer, function()
    return lt.cross_entropy(net(words, lengths):transpose(2, 3), tags)
  end)
end
