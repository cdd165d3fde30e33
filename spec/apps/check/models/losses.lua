-- spec/apps/check/models/losses.lua: several losses, a table as a result, a scheduler.
local lt = require "ltrain"
local nn = lt.nn
local Vae = lt.Module:extend "Vae"
function Vae:init()
  self.enc = nn.Linear(10, 6)
  self.dec = nn.Linear(3, 10)
  self.cls = nn.Linear(3, 4)
end
function Vae:training_step(batch)
  local h = self.enc(batch[1])
  local mean, logvar = h[{lt.all, {1, 3}}], h[{lt.all, {4, 6}}]
  local z = mean + (logvar * 0.5):exp() * lt.randn_like(mean)
  local rebuilt = lt.mse_loss(self.dec(z), batch[1])
  local kl = -0.5 * (1 + logvar - mean:square() - logvar:exp()):mean()
  local class = lt.cross_entropy(self.cls(mean), batch[2])
  local loss = rebuilt + 0.1 * kl + class
  self:log_dict{rebuilt = rebuilt, kl = kl, class = class}
  return {loss = loss, z = z:detach()}
end
function Vae:configure_optimizers()
  local o = lt.optim.Adam(self:parameters(), {lr = 1e-3})
  return {optimizer = o, lr_scheduler = lt.optim.CosineAnnealingLR(o, 10)}
end
local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.randn(64, 10), lt.randint(0, 4,
  {64})), {batch_size = 8, shuffle = true})
return {model = Vae(), data = loader}
