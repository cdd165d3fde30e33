-- spec/ports/gan.lua: a GAN of linear layers, by manual optimization in a Trainer.
local lt = require "ltrain"
local nn = lt.nn

local GAN = lt.Module:extend("GAN")

function GAN:init()
  self.automatic_optimization = false
  self.G = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 36), nn.Tanh())
  self.D = nn.Sequential(nn.Linear(36, 32), nn.GELU(), nn.Linear(32, 1))
end

function GAN:loss(images, real)
  local logits = self.D(images)
  local target = real and lt.ones_like(logits) or lt.zeros_like(logits)
  return lt.binary_cross_entropy_with_logits(logits, target)
end

function GAN:training_step(batch)
  local real, z = batch[1], batch[2]
  local for_d, for_g = table.unpack(self:optimizers())
  local loss_d = self:loss(real, true) + self:loss(self.G(z):detach(), false)
  for_d:zero_grad()
  self:manual_backward(loss_d)
  for_d:step()
  local loss_g = self:loss(self.G(z), true)
  for_g:zero_grad()
  self:manual_backward(loss_g)
  for_g:step()
  return (loss_d + loss_g):detach()
end

function GAN:configure_optimizers()
  local o = {lr = 2e-3, betas = {0.5, 0.999}}
  return {lt.optim.Adam(self.D:parameters(), o), lt.optim.Adam(self.G:parameters(), o)}
end

return function(formulas)
  local net, batches = GAN(), {}
  formulas.fill(net.G)
  formulas.fill(net.D)
  for step = 1, 20 do batches[step] = {formulas.wave{8, 36}, formulas.wave({8, 8}, step)} end
  return formulas.fit(net, batches, {max_steps = 40})
end
