-- spec/ports/crnn.lua: Reading a line of an image: convolutions, an LSTM over columns, CTC.
local lt = require "ltrain"
local nn = lt.nn

local CRNN = lt.Module:extend("CRNN")

function CRNN:init()
  self.cnn = nn.Sequential(nn.Conv2d(1, 8, 3, {padding = 1}), nn.ReLU(), nn.MaxPool2d(2))
  self.rnn = nn.LSTM(32, 12, {bidirectional = true})
  self.fc = nn.Linear(24, 6)
end

function CRNN:forward(x) -- [N, 1, 8, 2 T] -> log-probabilities [N, T, 6]
  local columns = self.cnn(x):permute(1, 4, 2, 3):flatten(3)
  local log_p = self.fc((self.rnn(columns))):log_softmax(-1)
  return log_p
end

return function(formulas)
  local net, x = formulas.fill(CRNN()), formulas.wave{3, 1, 8, 24}
  local targets = formulas.ids({3, 4}, 5) + 1
  local columns, lengths = lt.tensor{12, 12, 12}, lt.tensor{4, 2, 3}
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.01})
  return formulas.steps(optimizer, function()
    return lt.ctc_loss(net(x), targets, columns, lengths)
  end)
end
