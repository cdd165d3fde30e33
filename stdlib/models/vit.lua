-- stdlib/models/vit.lua: a vision transformer, with the names of torchvision's.
-- B batch, C channels, H height, W width, T patches and the class token, E features.
--
-- Dosovitskiy et al.: An image is worth 16x16 words, 2020. The defaults are those of vit_b_16.

local c = require "ltrain.c"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local nn = require "ltrain.nn"
local parallel = require "ltrain.parallel"

local Block = nn.Module:extend("EncoderBlock")

function Block:init(o)
  self.ln_1 = nn.LayerNorm(o.hidden_dim, { eps = 1e-6 })
  self.self_attention = nn.MultiheadAttention(o.hidden_dim, o.num_heads, { dropout = o.dropout })
  self.dropout = nn.Dropout(o.dropout)
  self.ln_2 = nn.LayerNorm(o.hidden_dim, { eps = 1e-6 })
  self.mlp = nn.Sequential(
    nn.Linear(o.hidden_dim, o.mlp_dim), nn.GELU(), nn.Dropout(o.dropout),
    nn.Linear(o.mlp_dim, o.hidden_dim), nn.Dropout(o.dropout))
  for _, i in ipairs { 1, 4 } do
    nn.init.xavier_uniform_(self.mlp[i].weight)
    nn.init.normal_(self.mlp[i].bias, 0, 1e-6)
  end
end

function Block:forward(x)
  x = x + self.dropout(self.self_attention(self.ln_1(x)))
  x = x + self.mlp(self.ln_2(x))
  return x
end

local Encoder = nn.Module:extend("Encoder")

function Encoder:init(length, o)
  self.pos_embedding = c.parameter(c.empty(1, length, o.hidden_dim):normal_(0, 0.02))
  self.dropout = nn.Dropout(o.dropout)
  self.layers = nn.ModuleDict()
  for i = 1, o.num_layers do self.layers["encoder_layer_" .. i - 1] = Block(o) end
  self.ln = nn.LayerNorm(o.hidden_dim, { eps = 1e-6 })
  self.num_layers = o.num_layers
end

function Encoder:forward(x)
  x = self.dropout(x + self.pos_embedding)
  for i = 1, self.num_layers do x = self.layers["encoder_layer_" .. i - 1](x) end
  x = self.ln(x)
  return x
end

local ViT = nn.Module:extend("VisionTransformer")
ViT.__arguments = "|"

local OPTIONS <const> = {
  image_size = { type = "integer", default = 224, min = 1 },
  patch_size = { type = "integer", default = 16, min = 1 },
  in_channels = { type = "integer", default = 3, min = 1 },
  num_layers = { type = "integer", default = 12, min = 1 },
  num_heads = { type = "integer", default = 12, min = 1 },
  hidden_dim = { type = "integer", default = 768, min = 1, doc = "features of a token" },
  mlp_dim = { type = "integer", default = 3072, min = 1 },
  num_classes = { type = "integer", default = 1000, min = 1 },
  dropout = { type = "number", default = 0, min = 0, max = 1 },
}

--- lt.models.vit{image_size = 32, patch_size = 4, num_classes = 10}
function ViT:init(options)
  local o = config.check(options, OPTIONS, "models.vit")
  if o.image_size % o.patch_size ~= 0 then
    errors.blame("models.vit: image_size must be a multiple of patch_size: got %d and %d",
      o.image_size, o.patch_size)
  end
  self:save_hyperparameters(o)
  self.image_size, self.mlp_dim = o.image_size, o.mlp_dim
  local patches = (o.image_size // o.patch_size) ^ 2 // 1 | 0
  self.conv_proj = nn.Conv2d(o.in_channels, o.hidden_dim, o.patch_size, { stride = o.patch_size })
  local fan_in = o.in_channels * o.patch_size * o.patch_size
  nn.init.trunc_normal_(self.conv_proj.weight, { std = math.sqrt(1 / fan_in) })
  nn.init.zeros_(self.conv_proj.bias)
  self.class_token = c.parameter(c.zeros(1, 1, o.hidden_dim))
  self.encoder = Encoder(patches + 1, o)
  self.heads = nn.ModuleDict { head = nn.Linear(o.hidden_dim, o.num_classes) }
  nn.init.zeros_(self.heads.head.weight)
  nn.init.zeros_(self.heads.head.bias)
end

--- Returns a plan for lt.parallelize.
function ViT:tensor_parallel_plan()
  local layer <const> = "encoder.layers.*."
  return {
    [layer .. "self_attention"] = parallel.AttentionParallel(),
    [layer .. "mlp.0"] = parallel.ColwiseParallel(),
    [layer .. "mlp.2"] = parallel.SequenceParallel { sequence_dim = -1, size = self.mlp_dim },
    [layer .. "mlp.3"] = parallel.RowwiseParallel(),
  }
end

---@param x Tensor [B, C, H, W] -> [B, T, E], the class token first
function ViT:features(x)
  if x.shape[3] ~= self.image_size or x.shape[4] ~= self.image_size then
    errors.blame("models.vit: images must be %d x %d: got %s", self.image_size, self.image_size,
      errors.show_shape(x))
  end
  local patches = self.conv_proj(x):flatten(3):transpose(2, 3)
  local first = self.class_token:expand(x.shape[1], -1, -1):to(patches.dtype)
  local features = self.encoder(c.cat({ first, patches }, 2))
  return features
end

---@param x Tensor [B, C, H, W] -> logits [B, num_classes]
function ViT:forward(x)
  local logits = self.heads.head(self:features(x):select(2, 1))
  return logits
end

return ViT
