-- stdlib/models/convnext_tiny.lua: ConvNeXt, with the names of torchvision's.
-- B batch, C channels, H height, W width.
--
-- Liu et al.: A ConvNet for the 2020s, 2022.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local nn = require "ltrain.nn"

-- Normalizes the channels of each position of [B, C, H, W].
local LayerNorm2d = nn.LayerNorm:extend("LayerNorm2d")

function LayerNorm2d:forward(x)
  local y = nn.LayerNorm.forward(self, x:permute(1, 3, 4, 2))
  return y:permute(1, 4, 2, 3)
end

local Permute = nn.Module:extend("Permute")

function Permute:init(...) self.dims = { ... } end

function Permute:forward(x)
  local y = x:permute(table.unpack(self.dims))
  return y
end

-- x + scale * block(x); in training a sample skips the block with probability `drop`.
local Block = nn.Module:extend("Block")

function Block:init(width, drop)
  self.block = nn.Sequential(
    nn.Conv2d(width, width, 7, { padding = 3, groups = width }),
    Permute(1, 3, 4, 2),
    nn.LayerNorm(width, { eps = 1e-6 }),
    nn.Linear(width, 4 * width),
    nn.GELU(),
    nn.Linear(4 * width, width),
    Permute(1, 4, 2, 3))
  self.layer_scale = c.parameter(c.full({ width, 1, 1 }, 1e-6))
  self.drop = drop
end

function Block:forward(x)
  local y = self.block(x) * self.layer_scale
  if self.training and self.drop > 0 then
    local kept = c.full({ x.shape[1], 1, 1, 1 }, 1 - self.drop, { device = x.device }):bernoulli()
    y = y * (kept / (1 - self.drop)):to(y.dtype)
  end
  return x + y
end

local ConvNeXt = nn.Module:extend("ConvNeXt")
ConvNeXt.__arguments = "|"

local OPTIONS <const> = {
  num_classes = { type = "integer", default = 1000, min = 1 },
  widths = { type = "table", default = { 96, 192, 384, 768 }, doc = "channels of the stages" },
  blocks = { type = "table", default = { 3, 3, 9, 3 }, doc = "blocks of the stages" },
  stochastic_depth = { type = "number", default = 0.1, min = 0, below = 1,
    doc = "probability that a sample skips the last block; it is smaller for earlier blocks" },
}

--- lt.models.convnext_tiny{num_classes = 10}
function ConvNeXt:init(options)
  local o = config.check(options, OPTIONS, "models.convnext_tiny")
  self:save_hyperparameters(o)
  local widths, total, done = o.widths, 0, 0
  for _, count in ipairs(o.blocks) do total = total + count end
  self.features = nn.Sequential(nn.Sequential(nn.Conv2d(3, widths[1], 4, { stride = 4 }),
    LayerNorm2d(widths[1], { eps = 1e-6 })))
  for i, count in ipairs(o.blocks) do
    if i > 1 then
      self.features:append(nn.Sequential(LayerNorm2d(widths[i - 1], { eps = 1e-6 }),
        nn.Conv2d(widths[i - 1], widths[i], 2, { stride = 2 })))
    end
    local blocks = nn.Sequential()
    for _ = 1, count do
      blocks:append(Block(widths[i], o.stochastic_depth * done / math.max(total - 1, 1)))
      done = done + 1
    end
    self.features:append(blocks)
  end
  local width = widths[#widths]
  self.classifier = nn.Sequential(LayerNorm2d(width, { eps = 1e-6 }), nn.Flatten(),
    nn.Linear(width, o.num_classes))
  for _, module in ipairs(self:modules()) do
    if module.weight and (module.kernel_size or module.in_features) then
      nn.init.trunc_normal_(module.weight, { std = 0.02 })
      nn.init.zeros_(module.bias)
    end
  end
end

---@param x Tensor [B, 3, H, W] -> logits [B, num_classes]
function ConvNeXt:forward(x)
  local pooled = self.features(x):mean({ 3, 4 }, { keepdim = true })
  local logits = self.classifier(pooled)
  return logits
end

return ConvNeXt
