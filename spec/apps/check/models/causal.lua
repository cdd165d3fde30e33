-- spec/apps/check/models/causal.lua: a language model with tied weights, trained on tokens that
-- follow.
local lt = require "ltrain"
local nn = lt.nn
local Gpt = lt.Module:extend "Gpt"
function Gpt:init()
  self.words, self.places = nn.Embedding(20, 16), lt.parameter(lt.randn(8, 16) * 0.02)
  self.block = nn.TransformerEncoderLayer(16, 2, { dim_feedforward = 32, norm_first = true })
  self.head = nn.Linear(16, 20, { bias = false })
  self.head.weight = self.words.weight
end
function Gpt:forward(ids)
  local hidden = self.words(ids) + self.places
  local mask = lt.full({ 8, 8 }, -math.huge):triu(1)
  local logits = self.head(self.block(hidden, { mask = mask }))
  return logits
end
function Gpt:training_step(batch)
  local logits = self(batch[1])
  return lt.cross_entropy(logits:view(-1, 20), batch[2]:flatten())
end
function Gpt:configure_optimizers()
  local optimizer = lt.optim.AdamW(self:parameters(), { lr = 1, betas = { 0.9, 0.98 } })
  local function noam(step)
    return 16 ^ -0.5 * math.min((step + 1) ^ -0.5, (step + 1) * 40 ^ -1.5)
  end
  return { optimizer = optimizer, lr_scheduler = { interval = "step",
    scheduler = lt.optim.LambdaLR(optimizer, noam) } }
end
local ids = lt.randint(0, 20, { 64, 9 })
local data = lt.data.TensorDataset(ids:narrow(2, 1, 8), ids:narrow(2, 2, 8))
return { model = Gpt(), data = lt.data.DataLoader(data, { batch_size = 8, shuffle = true }),
  trainer = { max_epochs = 20 } }
