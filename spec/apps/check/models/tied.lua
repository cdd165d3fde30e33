-- spec/apps/check/models/tied.lua: a weight that two layers share.
local lt = require "ltrain"
local nn = lt.nn
local LM = lt.Module:extend "LM"
function LM:init()
  self.embed = nn.Embedding(12, 8)
  self.mix = nn.Linear(8, 8)
  self.out = nn.Linear(8, 12, {bias = false})
  self.out.weight = self.embed.weight
end
function LM:forward(ids) local y = self.out(self.mix(self.embed(ids)):tanh()) return y end
function LM:training_step(batch)
  local logits = self(batch[1])
  local loss = lt.cross_entropy(logits:reshape(-1, 12), batch[2]:reshape(-1))
  return loss
end
function LM:configure_optimizers() return lt.optim.AdamW(self:parameters(), {lr = 1e-2}) end
local ids = lt.randint(0, 12, {50, 7})
local loader = lt.data.DataLoader(lt.data.TensorDataset(ids[{lt.all, {1, 6}}], ids[{lt.all, {2,
  7}}]), {batch_size = 5, shuffle = true})
return {model = LM(), data = loader}
