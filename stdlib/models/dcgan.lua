-- stdlib/models/dcgan.lua: DCGAN, an image generator and its discriminator, with the parameter
-- names of PyTorch's example. B batch, Z latent features.
--
-- Radford et al.: Unsupervised representation learning with deep convolutional generative
-- adversarial networks, 2015. Images are 64 x 64.

local config = require "ltrain.core.config"
local nn = require "ltrain.nn"

local Generator = nn.Module:extend("Generator")

function Generator:init(latent, width, channels)
  self.main = nn.Sequential()
  local inputs = latent
  for i = 3, 0, -1 do
    local outputs, first = width << i, i == 3
    self.main:append(nn.ConvTranspose2d(inputs, outputs, 4, { stride = first and 1 or 2,
      padding = first and 0 or 1, bias = false }))
    self.main:append(nn.BatchNorm2d(outputs))
    self.main:append(nn.ReLU())
    inputs = outputs
  end
  self.main:append(nn.ConvTranspose2d(width, channels, 4, { stride = 2, padding = 1,
    bias = false }))
  self.main:append(nn.Tanh())
end

function Generator:forward(z)
  local images = self.main(z:reshape(z.shape[1], -1, 1, 1))
  return images
end

local Discriminator = nn.Module:extend("Discriminator")

function Discriminator:init(width, channels)
  self.main = nn.Sequential()
  local inputs = channels
  for i = 0, 3 do
    local outputs = width << i
    self.main:append(nn.Conv2d(inputs, outputs, 4, { stride = 2, padding = 1, bias = false }))
    if i > 0 then self.main:append(nn.BatchNorm2d(outputs)) end
    self.main:append(nn.LeakyReLU(0.2))
    inputs = outputs
  end
  self.main:append(nn.Conv2d(inputs, 1, 4, { bias = false }))
end

function Discriminator:forward(x)
  local logits = self.main(x):flatten()
  return logits
end

local DCGAN = nn.Module:extend("DCGAN")
DCGAN.__arguments = "|"

local OPTIONS <const> = {
  latent = { type = "integer", default = 100, min = 1 },
  width = { type = "integer", default = 64, min = 1, doc = "base number of channels" },
  channels = { type = "integer", default = 3, min = 1, doc = "of an image" },
}

--- lt.models.dcgan{width = 32}: `model.generator(z)` returns images in -1..1, and
--- `model.discriminator(images)` logits [B] (PyTorch's example ends with a sigmoid)
function DCGAN:init(options)
  local o = config.check(options, OPTIONS, "models.dcgan")
  self:save_hyperparameters(o)
  self.generator = Generator(o.latent, o.width, o.channels)
  self.discriminator = Discriminator(o.width, o.channels)
  for _, module in ipairs(self:modules()) do
    if module.kernel_size then
      nn.init.normal_(module.weight, 0, 0.02)
    elseif module.running_mean then
      nn.init.normal_(module.weight, 1, 0.02)
    end
  end
end

---@param z Tensor [B, Z] -> images [B, channels, 64, 64]
function DCGAN:forward(z)
  local images = self.generator(z)
  return images
end

return DCGAN
