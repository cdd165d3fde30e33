-- stdlib/models/vae.lua: a variational autoencoder, with the names of PyTorch's example.
-- B batch, F inputs, Z latent features.
--
-- Kingma and Welling: Auto-encoding variational Bayes, 2013.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local nn = require "ltrain.nn"

local VAE = nn.Module:extend("VAE")
VAE.__arguments = "|"

local OPTIONS <const> = {
  in_features = { type = "integer", default = 784, min = 1 },
  hidden = { type = "integer", default = 400, min = 1 },
  latent = { type = "integer", default = 20, min = 1 },
}

--- lt.models.vae{latent = 2}
function VAE:init(options)
  local o = config.check(options, OPTIONS, "models.vae")
  self:save_hyperparameters(o)
  self.fc1 = nn.Linear(o.in_features, o.hidden)
  self.fc21, self.fc22 = nn.Linear(o.hidden, o.latent), nn.Linear(o.hidden, o.latent)
  self.fc3 = nn.Linear(o.latent, o.hidden)
  self.fc4 = nn.Linear(o.hidden, o.in_features)
end

--- Encodes x: returns the mean and the logarithm of the variance, [B, Z] each.
---@param x Tensor [B, F], or images with F pixels
function VAE:encode(x)
  local h = self.fc1(x:flatten(2)):relu()
  return self.fc21(h), self.fc22(h)
end

---@param z Tensor [B, Z] -> [B, F], in 0..1
function VAE:decode(z)
  local x = self.fc4(self.fc3(z):relu()):sigmoid()
  return x
end

--- Returns the reconstruction, the mean and the logarithm of the variance. The latent features are
--- sampled in training mode, and are the mean in evaluation mode.
---@param x Tensor [B, F] -> [B, F]
function VAE:forward(x)
  local mean, log_variance = self:encode(x)
  local z = mean
  if self.training then z = mean + c.randn_like(mean) * (log_variance / 2):exp() end
  return self:decode(z), mean, log_variance
end

--- Binary cross-entropy of the reconstruction plus the KL divergence from a standard normal
--- distribution, summed over the batch.
---@param x Tensor [B, F], in 0..1
function VAE:loss(x)
  local y, mean, log_variance = self(x)
  local error = c.binary_cross_entropy(y, x:flatten(2), { reduction = "sum" })
  local divergence = (mean * mean + log_variance:exp() - log_variance - 1):sum() / 2
  return error + divergence
end

return VAE
