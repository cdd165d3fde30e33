-- spec/ports/word_lm.lua: pytorch/examples: a GRU over a text in pieces, its state carried on.
local lt = require "ltrain"
local nn = lt.nn

local LM = lt.Module:extend("LM")

function LM:init()
  self.encoder = nn.Embedding(15, 12)
  self.rnn = nn.GRU(12, 16, {num_layers = 2})
  self.decoder = nn.Linear(16, 15)
end

function LM:forward(ids, state) -- [N, T] -> [N, T, V], the state
  local y, after = self.rnn(self.encoder(ids), state)
  return self.decoder(y), after
end

return function(formulas)
  local net, text, losses = formulas.fill(LM()), formulas.ids({4, 41}, 15), {}
  local optimizer, state = lt.optim.SGD(net:parameters(), {lr = 0.5}), nil
  for step = 1, 20 do
    local at = (step - 1) % 4 * 10
    if at == 0 then state = nil end
    local logits, after = net(text:narrow(2, at + 1, 10), state)
    state = after:detach()
    local loss = lt.cross_entropy(logits:flatten(1, 2), text:narrow(2, at + 2, 10):flatten())
    optimizer:zero_grad()
    loss:backward()
    nn.utils.clip_grad_norm_(net:parameters(), 0.25)
    optimizer:step()
    losses[step] = loss:item()
  end
  return losses
end
