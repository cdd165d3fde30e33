-- spec/apps/check/models/crf.lua: a linear-chain CRF: all paths against the right one.
local lt = require "ltrain"
local nn = lt.nn
local Crf = lt.Module:extend "Crf"
function Crf:init()
  self.words, self.lstm = nn.Embedding(30, 16), nn.LSTM(16, 16, { bidirectional = true })
  self.scores = nn.Linear(32, 5)
  self.moves = lt.parameter(lt.zeros(5, 5))
end
function Crf:forward(ids)
  local out = self.lstm(self.words(ids))
  local scores = self.scores(out)
  return scores
end
function Crf:training_step(batch)
  local scores, tags = self(batch[1]), batch[2]
  local steps = tags.shape[2]
  local all = scores:select(2, 1)
  for t = 2, steps do
    all = (all:unsqueeze(3) + self.moves:unsqueeze(1)):logsumexp(2) + scores:select(2, t)
  end
  local right = scores:gather(3, tags:unsqueeze(3)):squeeze(-1):sum(2)
  local from, to = tags:narrow(2, 1, steps - 1), tags:narrow(2, 2, steps - 1)
  right = right + self.moves:flatten()[(from * 5 + to):flatten()]:view(-1, steps - 1):sum(2)
  local loss = (all:logsumexp(2) - right):mean()
  return loss
end
function Crf:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 1e-2 }) end
local ids = lt.randint(0, 30, { 64, 6 })
local data = lt.data.TensorDataset(ids, ids:remainder(5))
return { model = Crf(), data = lt.data.DataLoader(data, { batch_size = 8, shuffle = true }) }
