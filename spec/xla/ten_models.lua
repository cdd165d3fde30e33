-- spec/xla/ten_models.lua: small models of ten kinds, as examples and users have them: rows of
-- name, dtype, the net, a batch of it, its loss, its optimizer; the last is a module that steps
-- two optimizers itself.
--
-- Where training multiplies rounding (batch norm over few positions, a net against another) losses
-- in f32 part on any two devices; those models run in f64, where what is left of the difference is
-- small.
local lt = require "ltrain"

local nn <const> = lt.nn

local function adam(net) return lt.optim.AdamW(net:parameters(), { lr = 1e-3 }) end
local function sgd(net) return lt.optim.SGD(net:parameters(), { lr = 1e-3, momentum = 0.9 }) end

local function of_classes(net, x, y) return lt.cross_entropy(net(x), y) end
local function of_tokens(net, ids, next_ids)
  return lt.cross_entropy(net(ids):flatten(1, 2), next_ids:flatten())
end

local function images(channels, size, classes)
  return function() return lt.randn(4, channels, size, size), lt.randint(0, classes, { 4 }) end
end
local function tokens()
  return lt.randint(0, 17, { 4, 12 }), lt.randint(0, 17, { 4, 12 })
end

local function digits()
  return nn.Sequential(nn.Conv2d(1, 4, 3, { padding = 1 }), nn.BatchNorm2d(4), nn.ReLU(),
    nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, { padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(),
    nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.25), nn.Linear(8 * 7 * 7, 10))
end

local GPT = lt.Module:extend("GPT")

function GPT:init()
  self.token, self.position = nn.Embedding(17, 16), nn.Embedding(12, 16)
  self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
  self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 16))
  self.head = nn.Linear(16, 17)
end

function GPT:forward(ids)
  local x = self.token(ids) + self.position(lt.arange(0, ids:size(2), { device = ids.device }))
  local qkv = self.qkv(self.norm(x)):view(4, 12, 3, 2, 8):permute(3, 1, 4, 2, 5)
  local mixed = lt.scaled_dot_product_attention(qkv[1], qkv[2], qkv[3], { causal = true })
  x = x + self.out(mixed:transpose(2, 3):reshape(4, 12, 16))
  return (self.head(x + self.mlp(x)))
end

local LSTM = lt.Module:extend("LSTM")

function LSTM:init()
  self.token, self.lstm = nn.Embedding(17, 16), nn.LSTM(16, 16, { num_layers = 2 })
  self.head = nn.Linear(16, 17)
end

function LSTM:forward(ids)
  local y = self.lstm(self.token(ids))
  return (self.head(y))
end

local BERT = lt.Module:extend("BERT")

function BERT:init()
  self.bert = lt.models.bert { vocab_size = 17, hidden_size = 16, num_hidden_layers = 2,
    num_attention_heads = 2, intermediate_size = 32, max_position_embeddings = 12 }
  self.head = nn.Linear(16, 17)
end

function BERT:forward(ids)
  local y = self.bert(ids)
  return (self.head(y))
end

-- Two optimizers that a module steps by itself.
local GAN = lt.Module:extend("GAN")

function GAN:init()
  self.automatic_optimization = false
  self.net, self.losses = lt.models.dcgan { latent = 4, width = 2, channels = 1 }, {}
end

function GAN:training_step(x)
  local generator, discriminator = table.unpack(self:optimizers())
  local logit_loss <const> = lt.binary_cross_entropy_with_logits
  local fake = self.net.generator(lt.randn(4, 4, { device = x.device, dtype = x.dtype }))
  local real_logits, fake_logits = self.net.discriminator(x), self.net.discriminator(fake:detach())
  local loss = logit_loss(real_logits, lt.ones_like(real_logits))
    + logit_loss(fake_logits, lt.zeros_like(fake_logits))
  discriminator:zero_grad()
  self:manual_backward(loss)
  discriminator:step()
  local logits = self.net.discriminator(fake)
  local fooled = logit_loss(logits, lt.ones_like(logits))
  generator:zero_grad()
  self:manual_backward(fooled)
  generator:step()
  table.insert(self.losses, (loss + fooled):detach())
end

function GAN:configure_optimizers()
  local options = { lr = 2e-4, betas = { 0.5, 0.999 } }
  return { lt.optim.Adam(self.net.generator:parameters(), options),
           lt.optim.Adam(self.net.discriminator:parameters(), options) }
end

local MODELS <const> = {
  { "mlp", "f32", function()
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 10))
  end, function() return lt.randn(16, 20), lt.randint(0, 10, { 16 }) end, of_classes, adam },
  { "digits", "f32", digits, images(1, 28, 10), of_classes, adam },
  { "char_gpt", "f32", GPT, tokens, of_tokens, adam },
  { "resnet18", "f64", function()
    return lt.models.resnet18 { num_classes = 10, width = 4 }
  end, images(3, 64, 10), of_classes, sgd },
  { "unet", "f64", function()
    return lt.models.unet { num_classes = 4, width = 4 }
  end, function() return lt.randn(2, 3, 32, 32), lt.randint(0, 4, { 2, 32, 32 }) end, of_classes,
    sgd },
  { "vit", "f32", function()
    return lt.models.vit { image_size = 8, patch_size = 4, num_layers = 2, num_heads = 2,
      hidden_dim = 16, mlp_dim = 32, num_classes = 10 }
  end, images(3, 8, 10), of_classes, adam },
  { "lstm", "f32", LSTM, tokens, of_tokens, adam },
  { "bert", "f32", BERT, tokens, of_tokens, adam },
  { "gpt2", "f32", function()
    return lt.models.gpt2 { vocab_size = 17, n_positions = 12, n_embd = 16, n_layer = 2,
      n_head = 2 }
  end, tokens, of_tokens, adam },
  { "dcgan, optimized by hand", "f64", GAN, function() return lt.randn(4, 1, 64, 64) end },
}

return MODELS
