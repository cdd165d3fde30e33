-- spec/ports/seq2seq.lua: Translation by GRUs with additive attention (Bahdanau), teacher forcing.
local lt = require "ltrain"
local nn = lt.nn

local Attention = lt.Module:extend("Attention")

function Attention:init()
  self.Wa, self.Ua, self.Va = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 1)
end

function Attention:forward(query, keys) -- [N, 1, H], [N, S, H] -> [N, 1, H]
  local scores = self.Va((self.Wa(query) + self.Ua(keys)):tanh()):transpose(2, 3)
  return lt.bmm(scores:softmax(-1), keys)
end

local Seq2Seq = lt.Module:extend("Seq2Seq")

function Seq2Seq:init()
  self.source, self.encoder = nn.Embedding(15, 12), nn.GRU(12, 12)
  self.target, self.decoder = nn.Embedding(14, 12), nn.GRU(24, 12)
  self.attention, self.out = Attention(), nn.Linear(12, 14)
end

function Seq2Seq:forward(source, target) -- ids [N, S], [N, T] -> [N, T, V]
  local keys, hidden = self.encoder(self.source(source))
  local outputs = {}
  for t = 1, target:size(2) do
    local context = self.attention(hidden:transpose(1, 2), keys)
    local x = lt.cat({self.target(target:narrow(2, t, 1)), context}, {dim = 3})
    outputs[t], hidden = self.decoder(x, hidden)
  end
  return self.out(lt.cat(outputs, {dim = 2}))
end

return function(formulas)
  local net, source = formulas.fill(Seq2Seq()), formulas.ids({4, 6}, 15)
  local target = formulas.ids({4, 6}, 14, 5)
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.01})
  return formulas.steps(optimizer, function()
    local logits = net(source, target[{lt.all, {1, -2}}])
    return lt.cross_entropy(logits:flatten(1, 2), target[{lt.all, {2, -1}}]:flatten())
  end)
end
