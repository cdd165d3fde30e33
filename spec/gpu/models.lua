-- spec/gpu/models.lua: the models of ./dev gpu; side.py has the same.
--
-- A case is {net, loss, inputs, targets, optimizer, dtype, flops a step}. Sizes: full, or tiny for
-- the emulated GPU.
local lt = require "ltrain"
local nn = lt.nn

local Block = lt.Module:extend "Block"

function Block:init(width, heads)
  self.heads = heads
  self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
  self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
  self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
end

function Block:forward(x) -- [B, T, C] -> [B, T, C]
  local b, t, c = table.unpack(x.shape)
  local qkv = self.qkv(self.norm1(x)):view(b, t, 3, self.heads, c // self.heads)
  qkv = qkv:permute(3, 1, 4, 2, 5)
  local y = lt.scaled_dot_product_attention(qkv[1], qkv[2], qkv[3], { causal = true })
  x = x + self.out(y:transpose(2, 3):reshape(b, t, c))
  return x + self.down(self.up(self.norm2(x)):gelu_tanh())
end

local GPT = lt.Module:extend "GPT"

function GPT:init(o)
  self.token, self.position = nn.Embedding(o.vocabulary, o.width), nn.Embedding(o.length, o.width)
  self.blocks = nn.ModuleList {}
  for _ = 1, o.layers do self.blocks:append(Block(o.width, o.heads)) end
  self.norm, self.head = nn.LayerNorm(o.width), nn.Linear(o.width, o.vocabulary, { bias = false })
end

function GPT:forward(ids)
  local x = self.token(ids) + self.position(lt.arange(0, ids:size(2), { device = ids.device }))
  for _, block in ipairs(self.blocks) do x = block(x) end
  return self.head(self.norm(x)):flatten(1, 2)
end

local Bottleneck = lt.Module:extend "Bottleneck"

-- 1x1, 3x3 and 1x1 convolutions around a shortcut, which is projected where sizes change.
function Bottleneck:init(from, width, stride)
  local plain <const> = { bias = false }
  self.conv1, self.norm1 = nn.Conv2d(from, width, 1, plain), nn.BatchNorm2d(width)
  self.conv2 = nn.Conv2d(width, width, 3, { stride = stride, padding = 1, bias = false })
  self.norm2 = nn.BatchNorm2d(width)
  self.conv3, self.norm3 = nn.Conv2d(width, 4 * width, 1, plain), nn.BatchNorm2d(4 * width)
  if stride ~= 1 or from ~= 4 * width then
    self.project = nn.Conv2d(from, 4 * width, 1, { stride = stride, bias = false })
    self.norm = nn.BatchNorm2d(4 * width)
  end
end

function Bottleneck:forward(x)
  local y = self.norm1(self.conv1(x)):relu()
  y = self.norm2(self.conv2(y)):relu()
  y = self.norm3(self.conv3(y))
  local short = self.project and self.norm(self.project(x)) or x
  return (y + short):relu()
end

local ResNet = lt.Module:extend "ResNet"

function ResNet:init(o)
  self.conv = nn.Conv2d(3, o.width, 7, { stride = 2, padding = 3, bias = false })
  self.norm, self.blocks = nn.BatchNorm2d(o.width), nn.ModuleList {}
  local from, width = o.width, o.width
  for stage, count in ipairs(o.stages) do
    for k = 1, count do
      self.blocks:append(Bottleneck(from, width, k == 1 and stage > 1 and 2 or 1))
      from = 4 * width
    end
    width = 2 * width
  end
  self.head = nn.Linear(from, o.classes)
end

function ResNet:forward(x) -- [B, 3, H, W] -> [B, classes]
  x = self.norm(self.conv(x)):relu()
  x = x:max_pool2d(3, { stride = 2, padding = 1 })
  for _, block in ipairs(self.blocks) do x = block(x) end
  return (self.head(x:mean { 3, 4 }))
end

local MLP = lt.Module:extend "MLP"

function MLP:init(o)
  self.layers = nn.ModuleList {}
  for _ = 1, o.layers do self.layers:append(nn.Linear(o.width, o.width)) end
end

function MLP:forward(x)
  for _, layer in ipairs(self.layers) do x = layer(x):relu() end
  return x
end

local SIZES <const> = {
  gpt2 = {
    full = { batch = 8, layers = 12, width = 768, heads = 12, length = 1024, vocabulary = 50304 },
    tiny = { batch = 2, layers = 1, width = 16, heads = 2, length = 8, vocabulary = 32 },
  },
  resnet50 = {
    full = { batch = 64, width = 64, stages = { 3, 4, 6, 3 }, image = 224, classes = 1000 },
    tiny = { batch = 2, width = 4, stages = { 1, 1 }, image = 16, classes = 4 },
  },
  mlp = {
    full = { batch = 16, layers = 24, width = 64 },
    tiny = { batch = 4, layers = 2, width = 8 },
  },
}

local models = {}

local make = {}

-- 6 flops a weight and token, and the products of attention.
function make.gpt2(o)
  local b, t = o.batch, o.length
  local net = GPT(o)
  local weights = 12 * o.layers * o.width ^ 2 + o.vocabulary * o.width
  return {
    net = net, dtype = "bf16",
    flops = 6 * weights * b * t + 6 * o.layers * b * t * t * o.width,
    inputs = lt.randint(0, o.vocabulary, { b, t }),
    targets = lt.randint(0, o.vocabulary, { b * t }),
    optimizer = function(p) return lt.optim.AdamW(p, { lr = 3e-4, weight_decay = 0.1 }) end,
  }
end

function make.resnet50(o)
  return {
    net = ResNet(o), dtype = "f16",
    inputs = lt.randn(o.batch, 3, o.image, o.image),
    targets = lt.randint(0, o.classes, { o.batch }),
    optimizer = function(p) return lt.optim.SGD(p, { lr = 0.01, momentum = 0.9 }) end,
  }
end

function make.mlp(o)
  return {
    net = MLP(o),
    inputs = lt.randn(o.batch, o.width), targets = lt.randint(0, o.width, { o.batch }),
    optimizer = function(p) return lt.optim.Adam(p, { lr = 1e-3 }) end,
  }
end

--- The case `name` ("gpt2", "resnet50", "mlp") on the GPU, with `step`, which trains one batch.
function models.case(name, tiny)
  local case = make[name](SIZES[name][tiny and "tiny" or "full"])
  local net = case.net:to "cuda"
  local x, y = case.inputs:to "cuda", case.targets:to "cuda"
  local optimizer = case.optimizer(net:parameters())
  local scaler = case.dtype == "f16" and lt.GradScaler {} or nil
  local function loss_of() return lt.cross_entropy(net(x):to "f32", y) end
  function case.step()
    optimizer:zero_grad()
    local loss = case.dtype and lt.autocast(case.dtype, loss_of) or loss_of()
    if scaler then
      scaler:scale(loss):backward()
      scaler:step(optimizer)
      scaler:update()
    else
      loss:backward()
      optimizer:step()
    end
    return loss
  end
  return case
end

return models
