-- spec/ports/sine_lstm.lua: Time sequence prediction: two LSTM cells over sines, by L-BFGS.
local lt = require "ltrain"
local nn = lt.nn

local Sequence = lt.Module:extend("Sequence")

function Sequence:init()
  self.lstm1 = nn.LSTMCell(1, 8)
  self.lstm2 = nn.LSTMCell(8, 8)
  self.linear = nn.Linear(8, 1)
end

function Sequence:forward(x) -- [N, T] -> the same
  local outputs, h1, c1, h2, c2 = {}, nil, nil, nil, nil
  for t = 1, x:size(2) do
    h1, c1 = self.lstm1(x:narrow(2, t, 1), h1 and {h1, c1})
    h2, c2 = self.lstm2(h1, h2 and {h2, c2})
    outputs[t] = self.linear(h2)
  end
  return lt.cat(outputs, {dim = 2})
end

return function(formulas)
  local net, losses = formulas.fill(Sequence()), {}
  local x = (lt.arange(13) * 0.5 + lt.arange(3):unsqueeze(2)):sin()
  local optimizer = lt.optim.LBFGS(net:parameters(), {lr = 0.5, max_iter = 2})
  for step = 1, 20 do
    local loss = optimizer:step(function()
      optimizer:zero_grad()
      local loss = lt.mse_loss(net(x[{lt.all, {1, -2}}]), x[{lt.all, {2, -1}}])
      loss:backward()
      return loss
    end)
    losses[step] = loss:item()
  end
  return losses
end
