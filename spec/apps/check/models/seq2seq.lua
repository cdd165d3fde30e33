-- spec/apps/check/models/seq2seq.lua: an encoder and a decoder with teacher forcing.
local lt = require "ltrain"
local nn = lt.nn
local BEGIN <const> = 0
local Seq2Seq = lt.Module:extend "Seq2Seq"
function Seq2Seq:init()
  self.words, self.other_words = nn.Embedding(20, 16), nn.Embedding(20, 16)
  self.encoder, self.decoder = nn.GRU(16, 24), nn.GRU(16, 24)
  self.head = nn.Linear(24, 20)
end
function Seq2Seq:forward(from, to)
  local _, state = self.encoder(self.words(from))
  local begin = lt.full({ to.shape[1], 1 }, BEGIN, { dtype = "i64" })
  local given = lt.cat({ begin, to:narrow(2, 1, to.shape[2] - 1) }, 2)
  local out = self.decoder(self.other_words(given), state)
  local logits = self.head(out)
  return logits
end
function Seq2Seq:training_step(batch)
  local logits = self(batch[1], batch[2])
  local loss = lt.cross_entropy(logits:movedim(-1, 2), batch[2])
  self:log("loss", loss)
  return loss
end
function Seq2Seq:configure_optimizers()
  return lt.optim.Adam(self:parameters(), { lr = 1e-3 })
end
local from = lt.randint(1, 20, { 64, 7 })
local data = lt.data.TensorDataset(from, from:flip(2))
return { model = Seq2Seq(), data = lt.data.DataLoader(data, { batch_size = 8, shuffle = true }) }
