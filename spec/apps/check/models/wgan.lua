-- spec/apps/check/models/wgan.lua: a Wasserstein GAN with a gradient penalty: gradients of
-- gradients.
local lt = require "ltrain"
local nn = lt.nn
local Wgan = lt.Module:extend "Wgan"
function Wgan:init()
  self.automatic_optimization = false
  self.make = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
  self.judge = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
end
function Wgan:penalty(real, fake)
  local share = lt.rand(real.shape[1], 1)
  local between = (share * real + (1 - share) * fake):detach()
  between.requires_grad = true
  local gradient = lt.grad(self.judge(between):sum(), { between }, { create_graph = true })[1]
  return (gradient:norm(2, { dims = 2 }) - 1):square():mean()
end
function Wgan:training_step(batch, index)
  local makes, judges = table.unpack(self:optimizers())
  local real = batch[1]
  local fake = self.make(lt.randn(real.shape[1], 4))
  local loss = self.judge(fake:detach()):mean() - self.judge(real):mean()
    + 10 * self:penalty(real, fake:detach())
  judges:zero_grad()
  self:manual_backward(loss)
  judges:step()
  if index % 5 == 0 then
    makes:zero_grad()
    self:manual_backward(-self.judge(fake):mean())
    makes:step()
  end
  self:log("loss", loss)
end
function Wgan:configure_optimizers()
  local options = { lr = 1e-4, betas = { 0.0, 0.9 } }
  return { lt.optim.Adam(self.make:parameters(), options),
    lt.optim.Adam(self.judge:parameters(), options) }
end
local data = lt.data.TensorDataset(lt.randn(64, 2))
return { model = Wgan(), data = lt.data.DataLoader(data, { batch_size = 16, shuffle = true }) }
