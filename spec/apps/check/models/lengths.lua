-- spec/apps/check/models/lengths.lua: samples of different lengths, padded by a collate function.
local lt = require "ltrain"
local nn = lt.nn
local Tagger = lt.Module:extend "Tagger"
function Tagger:init()
  self.embed = nn.Embedding(20, 8)
  self.rnn = nn.LSTM(8, 8, {batch_first = true})
  self.head = nn.Linear(8, 3)
end
function Tagger:forward(ids, lengths)
  local h = self.rnn(self.embed(ids))
  local mask = lt.arange(0, ids.shape[2]):unsqueeze(1):lt(lengths:unsqueeze(2))
  local m = mask:float():unsqueeze(3)
  local mean = (h * m):sum(2) / m:sum(2)
  local y = self.head(mean)
  return y
end
function Tagger:training_step(batch)
  local loss = lt.cross_entropy(self(batch[1], batch[2]), batch[3])
  return loss
end
function Tagger:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-2}) end
local samples = {}
for i = 1, 40 do
  local n = math.random(2, 7)
  samples[i] = {lt.randint(0, 20, {n}), i % 3}
end
local function collate(list)
  local longest = 0
  for _, s in ipairs(list) do longest = math.max(longest, s[1].shape[1]) end
  local ids, lengths, labels = lt.zeros({#list, longest}, {dtype = "i64"}), {}, {}
  for i, s in ipairs(list) do
    local n = s[1].shape[1]
    ids[{i, {1, n}}] = s[1]
    lengths[i], labels[i] = n, s[2]
  end
  return {ids, lt.tensor(lengths), lt.tensor(labels)}
end
local loader = lt.data.DataLoader(samples, {batch_size = 4, shuffle = true, collate = collate})
return {model = Tagger(), data = loader}
