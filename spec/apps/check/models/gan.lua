-- spec/apps/check/models/gan.lua: two optimizers in manual optimization.
local lt = require "ltrain"
local nn = lt.nn
local Gan = lt.Module:extend "Gan"
function Gan:init()
  self.automatic_optimization = false
  self.generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
  self.critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 1))
end
function Gan:forward(z) local y = self.generator(z) return y end
function Gan:training_step(batch)
  local g, d = table.unpack(self:optimizers())
  local real = batch[1]
  local n = real.shape[1]
  local fake = self.generator(lt.randn(n, 4))
  local loss_d = lt.binary_cross_entropy_with_logits(self.critic(real), lt.ones(n, 1))
    + lt.binary_cross_entropy_with_logits(self.critic(fake:detach()), lt.zeros(n, 1))
  d:zero_grad() self:manual_backward(loss_d) d:step()
  local loss_g = lt.binary_cross_entropy_with_logits(self.critic(fake), lt.ones(n, 1))
  g:zero_grad() self:manual_backward(loss_g) g:step()
  self:log("d", loss_d) self:log("g", loss_g)
end
function Gan:configure_optimizers()
  return {lt.optim.Adam(self.generator:parameters(), {lr = 1e-3}),
    lt.optim.Adam(self.critic:parameters(), {lr = 1e-3})}
end
local data = lt.data.TensorDataset(lt.randn(64, 2))
return {model = Gan(), data = lt.data.DataLoader(data, {batch_size = 16, shuffle = true})}
