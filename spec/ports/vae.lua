-- spec/ports/vae.lua: pytorch/examples: a variational autoencoder.
local lt = require "ltrain"
local nn = lt.nn

local VAE = lt.Module:extend("VAE")

function VAE:init()
  self.fc1 = nn.Linear(64, 32)
  self.fc21, self.fc22 = nn.Linear(32, 4), nn.Linear(32, 4)
  self.fc3, self.fc4 = nn.Linear(4, 32), nn.Linear(32, 64)
end

function VAE:forward(x, noise)
  local h = self.fc1(x):relu()
  local mu, logvar = self.fc21(h), self.fc22(h)
  local z = mu + noise * (0.5 * logvar):exp()
  return self.fc4(self.fc3(z):relu()):sigmoid(), mu, logvar
end

return function(formulas)
  local net, x = formulas.fill(VAE()), formulas.wave{8, 64}:gt(0):to "f32"
  local optimizer = lt.optim.Adam(net:parameters(), {lr = 3e-3})
  return formulas.steps(optimizer, function(step)
    local y, mu, logvar = net(x, formulas.wave({8, 4}, step))
    local kld = -0.5 * (1 + logvar - mu:square() - logvar:exp()):sum()
    return lt.binary_cross_entropy(y, x, {reduction = "sum"}) + kld
  end)
end
