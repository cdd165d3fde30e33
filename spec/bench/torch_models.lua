-- spec/bench/torch_models.lua: the models of ./dev bench torch and dist; torch_models.py has the
-- same.
local lt = require "ltrain"
local nn = lt.nn

local MLP = lt.Module:extend("MLP")
function MLP:init()
  self.a, self.b, self.c = nn.Linear(784, 256), nn.Linear(256, 128), nn.Linear(128, 10)
end
function MLP:forward(x)
  return (self.c(self.b(self.a(x):relu()):relu()))
end

local CNN = lt.Module:extend("CNN")
function CNN:init()
  self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
  self.norm = nn.BatchNorm2d(32)
  self.a, self.b = nn.Linear(9216, 128), nn.Linear(128, 10)
end
function CNN:forward(x)
  x = self.norm(self.conv1(x)):relu()
  x = self.conv2(x):relu():max_pool2d(2)
  return (self.b(self.a(x:flatten(2)):relu()))
end

local Block = lt.Module:extend("Block")
function Block:init(width, heads)
  self.heads, self.size = heads, width // heads -- of a rank, where they are divided
  self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
  self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
  self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
end
function Block:forward(x)
  local b, t = table.unpack(x.shape)
  local qkv = self.qkv(self.norm1(x)):view(b, t, 3, self.heads, self.size)
  qkv = qkv:permute(3, 1, 4, 2, 5)
  local y = lt.scaled_dot_product_attention(qkv[1], qkv[2], qkv[3], {causal = true})
  x = x + self.out(y:transpose(2, 3):reshape(b, t, -1))
  return x + self.down(self.up(self.norm2(x)):gelu())
end

local GPT = lt.Module:extend("GPT")
function GPT:init(width, heads, layers, length)
  width = width or 128
  self.token, self.position = nn.Embedding(65, width), nn.Embedding(length or 64, width)
  self.blocks = nn.ModuleList()
  for _ = 1, layers or 4 do self.blocks:append(Block(width, heads or 4)) end
  self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 65)
end
function GPT:forward(ids)
  local x = self.token(ids) + self.position(lt.arange(0, ids:size(2), {device = ids.device}))
  for _, block in ipairs(self.blocks) do x = block(x) end
  return self.head(self.norm(x)):flatten(1, 2)
end

local LSTM = lt.Module:extend("LSTM")
function LSTM:init()
  self.token, self.lstm = nn.Embedding(65, 256), nn.LSTM(256, 256, {num_layers = 2})
  self.head = nn.Linear(256, 65)
end
function LSTM:forward(ids)
  local y = self.lstm(self.token(ids))
  return self.head(y):flatten(1, 2)
end

local function resnet18() return lt.models.resnet18{num_classes = 10} end

local function unet() return lt.models.unet{num_classes = 4, width = 16} end

local function vit()
  return lt.models.vit{image_size = 32, patch_size = 4, num_layers = 6, num_heads = 3,
    hidden_dim = 192, mlp_dim = 768, num_classes = 10}
end

local function gpt2(size)
  local GPT2 = lt.models.gpt2:extend("GPT2")
  function GPT2:forward(ids) return (lt.models.gpt2.forward(self, ids)):flatten(1, 2) end
  size = size or {vocab_size = 512, n_positions = 128, n_embd = 256, n_layer = 6, n_head = 8}
  size.dropout = 0
  return GPT2(size)
end

local function gpt128_256() return GPT(128, 4, 4, 256) end
local function gpt512() return GPT(512, 8, 12, 128) end

local function gpt2_124m() return gpt2{vocab_size = 50257} end

local nets <const> = {mlp = MLP, mlp_512 = MLP, cnn = CNN, gpt = GPT, resnet18 = resnet18,
  unet = unet, vit = vit, gpt2 = gpt2, gpt2_124m = gpt2_124m, lstm = LSTM,
  gpt128_256 = gpt128_256, gpt512 = gpt512}

local models = {}

--- Samples in a batch.
models.batch_size = {mlp = 64, mlp_512 = 512, cnn = 32, gpt = 12, resnet18 = 8, unet = 4, vit = 16,
  gpt2 = 8, gpt2_124m = 4, lstm = 32,
  gpt128_256 = 4, gpt512 = 2}

function models.net(name) return nets[name]() end

function models.optimizer(name, net)
  if name == "cnn" or name == "resnet18" or name == "unet" then
    return lt.optim.SGD(net:parameters(), {lr = name == "cnn" and 0.01 or 1e-4, momentum = 0.9})
  elseif nets[name] == MLP then
    return lt.optim.Adam(net:parameters(), {lr = 1e-3})
  end
  return lt.optim.AdamW(net:parameters(), {lr = 1e-3, weight_decay = 0.1})
end

--- Random inputs and targets. Inputs are centred: with lt.rand's some units die, averages of their
--- gradients decay into denormal numbers, and Adam's step takes several times as long.
function models.batch(name)
  local b = models.batch_size[name]
  if nets[name] == MLP then return {lt.randn(b, 784), lt.randint(0, 10, {b})} end
  if name == "cnn" then return {lt.randn(b, 1, 28, 28), lt.randint(0, 10, {b})} end
  if name == "resnet18" or name == "vit" then
    local size = name == "vit" and 32 or 64
    return {lt.randn(b, 3, size, size), lt.randint(0, 10, {b})}
  elseif name == "unet" then
    return {lt.randn(b, 3, 64, 64), lt.randint(0, 4, {b, 64, 64})}
  elseif name == "gpt2" then
    return {lt.randint(0, 512, {b, 128}), lt.randint(0, 512, {b * 128})}
  end
  if name == "gpt2_124m" then
    return {lt.randint(0, 50257, {b, 64}), lt.randint(0, 50257, {b * 64})}
  elseif name == "lstm" then
    return {lt.randint(0, 65, {b, 128}), lt.randint(0, 65, {b * 128})}
  end
  local n = ({gpt128_256 = 256, gpt512 = 128})[name] or 64
  return {lt.randint(0, 65, {b, n}), lt.randint(0, 65, {b * n})}
end

return models
