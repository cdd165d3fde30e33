-- stdlib/nn/Transformer.lua: an encoder-decoder transformer (Vaswani et al. 2017).
-- N batch, S source positions, T target positions, E features.

local LayerNorm = require "ltrain.nn.LayerNorm"
local Module = require "ltrain.nn.Module"
local TransformerDecoder = require "ltrain.nn.TransformerDecoder"
local TransformerDecoderLayer = require "ltrain.nn.TransformerDecoderLayer"
local TransformerEncoder = require "ltrain.nn.TransformerEncoder"
local TransformerEncoderLayer = require "ltrain.nn.TransformerEncoderLayer"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local initialise = require "ltrain.nn.initialise"
local torch_masks = require "ltrain.nn.torch_masks"
local transformer_layer = require "ltrain.nn.transformer_layer"

local Transformer = Module:extend("Transformer")

local OF_LAYERS <const> = transformer_layer.options

local OPTIONS <const> = {
  d_model = { type = "integer", default = 512, min = 1, doc = "features" },
  nhead = { type = "integer", default = 8, min = 1, doc = "heads of attention" },
  num_encoder_layers = { type = "integer", default = 6, min = 1 },
  num_decoder_layers = { type = "integer", default = 6, min = 1 },
}
for name, row in next, OF_LAYERS do OPTIONS[name] = row end

Transformer.__arguments = "| d_model nhead num_encoder_layers num_decoder_layers dim_feedforward"
  .. " dropout activation (custom_encoder) (custom_decoder) layer_norm_eps (batch_first) "
  .. "norm_first bias"

--- nn.Transformer{d_model = 512, nhead = 8, dropout = 0.1}
function Transformer:init(options)
  local o = config.check(options, OPTIONS, "nn.Transformer")
  self.d_model, self.nhead = o.d_model, o.nhead
  local layer = {}
  for name in next, OF_LAYERS do layer[name] = o[name] end
  local function norm() return LayerNorm(o.d_model, { eps = o.layer_norm_eps, bias = o.bias }) end
  self.encoder = TransformerEncoder(TransformerEncoderLayer(o.d_model, o.nhead, layer),
    o.num_encoder_layers, { norm = norm() })
  self.decoder = TransformerDecoder(TransformerDecoderLayer(o.d_model, o.nhead, layer),
    o.num_decoder_layers, { norm = norm() })
  for _, parameter in ipairs(self:parameters()) do
    if parameter.ndim > 1 then initialise.xavier_uniform_(parameter) end
  end
end

local SOURCE <const> = "%s, which is true where a position takes part: %s = %s:logical_not()"

local CALL <const> = torch_masks({
  source_mask = { type = "tensor", doc = "[S, S] or [N, H, S, S]: true for positions that are "
    .. "attended to" },
  source_key_mask = { type = "tensor", doc = "bool [N, S]: true for positions that are not "
    .. "padding" },
  mask = { type = "tensor", doc = "[T, T] or [N, H, T, T]: true for positions that are attended "
    .. "to" },
  key_mask = { type = "tensor", doc = "bool [N, T]: true for positions that are not padding" },
  memory_mask = { type = "tensor", doc = "[T, S] or [N, H, T, S]" },
  memory_key_mask = { type = "tensor", doc = "bool [N, S]: true for positions of the memory that "
    .. "are not padding" },
  causal = { type = "boolean", default = false,
    doc = "target positions attend to positions up to their own only" },
}, true)
CALL.src_mask = { instead = SOURCE:format("source_mask", "source_mask", "src_mask") }
CALL.src_key_padding_mask =
  { instead = SOURCE:format("source_key_mask", "source_key_mask", "padding") }

---@param src Tensor [N, S, E]
---@param tgt Tensor [N, T, E] -> the same
function Transformer:forward(src, tgt, options)
  local o = config.check(options, CALL, "nn.Transformer")
  if src.shape[1] ~= tgt.shape[1] then
    errors.blame("nn.Transformer: source and target must have the same batch: got %s and %s%s",
      errors.show_shape(src), errors.show_shape(tgt), src.shape[2] == tgt.shape[2]
        and ": sequences are [N, T, E] here: x:transpose(1, 2)" or "")
  end
  local memory = self.encoder(src, { mask = o.source_mask, key_mask = o.source_key_mask })
  local y = self.decoder(tgt, memory, { mask = o.mask, key_mask = o.key_mask, causal = o.causal,
    memory_mask = o.memory_mask, memory_key_mask = o.memory_key_mask })
  return y
end

return Transformer
