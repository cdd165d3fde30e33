-- spec/ports/char_rnn.lua: Classifying names by a character-level RNN of linear layers.
local lt = require "ltrain"
local nn = lt.nn

local RNN = lt.Module:extend("RNN")

function RNN:init()
  self.i2h = nn.Linear(12, 16)
  self.h2h = nn.Linear(16, 16)
  self.h2o = nn.Linear(16, 5)
end

function RNN:forward(x, hidden)
  hidden = (self.i2h(x) + self.h2h(hidden)):tanh()
  return self.h2o(hidden):log_softmax(2), hidden
end

return function(formulas)
  local net = formulas.fill(RNN())
  local names = formulas.ids({6, 7}, 12):one_hot(12):to "f32"
  local labels = formulas.ids({6}, 5)
  local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.1})
  return formulas.steps(optimizer, function()
    local hidden, output = lt.zeros(6, 16), nil
    for t = 1, 7 do output, hidden = net(names:select(2, t), hidden) end
    return lt.nll_loss(output, labels)
  end)
end
