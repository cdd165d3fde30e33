-- spec/apps/check/models/accumulate.lua: manual optimization with a step after each fourth batch,
-- and sums that keep no graph.
local lt = require "ltrain"
local nn = lt.nn
local Net = lt.Module:extend "Net"
function Net:init()
  self.automatic_optimization = false
  self.layers = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
  self.total = 0
end
function Net:training_step(batch, batch_idx)
  local optimizer = self:optimizers()
  local loss = lt.cross_entropy(self.layers(batch[1]), batch[2])
  self:manual_backward(loss / 4)
  self.total = self.total + loss:detach()
  self.last = loss
  if (batch_idx + 1) % 4 == 0 then
    optimizer:step()
    optimizer:zero_grad()
  end
end
function Net:configure_optimizers()
  return lt.optim.Adam(self:parameters(), { lr = 1e-3 })
end
local data = lt.data.TensorDataset(lt.randn(64, 8), lt.randint(0, 4, { 64 }))
return { model = Net(), data = lt.data.DataLoader(data, { batch_size = 8, shuffle = true }) }
