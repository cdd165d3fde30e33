-- stdlib/nn/TransformerDecoderLayer.lua: self-attention, attention to a memory and a feedforward
-- network.
-- N batch, T positions, S positions of the memory, E features.

local Layer = require "ltrain.nn.transformer_layer"
local config = require "ltrain.core.config"
local torch_masks = require "ltrain.nn.torch_masks"

local TransformerDecoderLayer = Layer:extend("TransformerDecoderLayer")

TransformerDecoderLayer.__arguments = "d_model nhead"
  .. " | dim_feedforward dropout activation layer_norm_eps (batch_first) norm_first bias"

--- nn.TransformerDecoderLayer(512, 8): features and heads
function TransformerDecoderLayer:init(d_model, nhead, options)
  self:make(d_model, nhead, options, { "self_attn", "multihead_attn" })
end

local CALL <const> = torch_masks({
  mask = { type = "tensor", doc = "[T, T] or [N, H, T, T]: true for positions that are attended "
    .. "to" },
  memory_mask = { type = "tensor", doc = "[T, S] or [N, H, T, S]" },
  key_mask = { type = "tensor", doc = "bool [N, T]: true for positions that are not padding" },
  memory_key_mask = { type = "tensor", doc = "bool [N, S]: the same for the memory" },
  causal = { type = "boolean", default = false, doc = "positions attend to positions up to their "
    .. "own only" },
  cache = { type = "table", doc = "an nn.KVCache for the self-attention" },
}, true)

---@param x Tensor [N, T, E] -> the same
---@param memory Tensor [N, S, E]
function TransformerDecoderLayer:forward(x, memory, options)
  local o = config.check(options, CALL, "nn.TransformerDecoderLayer")
  local own = { mask = o.mask, key_mask = o.key_mask, causal = o.causal, cache = o.cache }
  local cross = { mask = o.memory_mask, key_mask = o.memory_key_mask }
  x = self:residual(x, 1, function(y) return (self.self_attn(y, own)) end)
  x = self:residual(x, 2, function(y) return (self.multihead_attn(y, memory, memory, cross)) end)
  x = self:residual(x, 3, function(y) return self:feedforward(y) end)
  return x
end

return TransformerDecoderLayer
