-- spec/cuda/nets.lua: small networks of three kinds, and batches for them, for counting what their
-- steps cost: nets.mlp, nets.cnn, nets.gpt: {layers = function, batch = function}; the GPT copies
-- its positions to the device in each step.
local lt = require "ltrain"
local nn = lt.nn

local nets = {}

nets.mlp = {
  layers = function()
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(),
      nn.Linear(16, 4))
  end,
  batch = function() return { lt.randn { 32, 8 }, lt.randint(0, 4, { 32 }) } end,
}

nets.cnn = {
  layers = function()
    return nn.Sequential(nn.Conv2d(1, 4, 3, { padding = 1 }), nn.BatchNorm2d(4), nn.ReLU(),
      nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2),
      nn.Flatten(), nn.Linear(32, 4))
  end,
  batch = function() return { lt.randn { 8, 1, 8, 8 }, lt.randint(0, 4, { 8 }) } end,
}

-- B batch, T time, C channels.
local T <const>, C <const>, HEADS <const>, VOCABULARY <const> = 8, 16, 2, 12
local GPT = lt.Module:extend "CountedGPT"

function GPT:init()
  self.token, self.position = nn.Embedding(VOCABULARY, C), nn.Embedding(T, C)
  self.norm1, self.norm2, self.norm3 = nn.LayerNorm(C), nn.LayerNorm(C), nn.LayerNorm(C)
  self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)
  self.mlp = nn.Sequential(nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))
  self.head = nn.Linear(C, VOCABULARY)
end

function GPT:attend(x) -- [B, T, C]
  local qkv = self.qkv(x):view(x:size(1), T, 3, HEADS, C // HEADS):permute(3, 1, 4, 2, 5)
  local mixed = lt.scaled_dot_product_attention(qkv[1], qkv[2], qkv[3], { causal = true })
  local joined = mixed:transpose(2, 3):reshape(x:size(1), T, C)
  return (self.out(joined))
end

function GPT:forward(ids) -- [B, T] -> [B T, VOCABULARY]
  local x = self.token(ids) + self.position(lt.arange(0, T, { device = ids.device }))
  x = x + self:attend(self.norm1(x))
  x = x + self.mlp(self.norm2(x))
  local logits = self.head(self.norm3(x))
  return logits:flatten(1, 2)
end

nets.gpt = {
  layers = function() return GPT() end,
  batch = function()
    return { lt.randint(0, VOCABULARY, { 4, T }), lt.randint(0, VOCABULARY, { 4, T }) }
  end,
}

return nets
