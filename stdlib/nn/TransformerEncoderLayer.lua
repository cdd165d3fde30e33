-- stdlib/nn/TransformerEncoderLayer.lua: self-attention and a feedforward network.
-- N batch, T positions, E features.

local Layer = require "ltrain.nn.transformer_layer"
local config = require "ltrain.core.config"
local torch_masks = require "ltrain.nn.torch_masks"

local TransformerEncoderLayer = Layer:extend("TransformerEncoderLayer")

TransformerEncoderLayer.__arguments = "d_model nhead"
  .. " | dim_feedforward dropout activation layer_norm_eps (batch_first) norm_first bias"

--- nn.TransformerEncoderLayer(512, 8, {norm_first = true}): features and heads
function TransformerEncoderLayer:init(d_model, nhead, options)
  self:make(d_model, nhead, options, { "self_attn" })
end

local CALL <const> = torch_masks {
  mask = { type = "tensor", doc = "[T, T] or [N, H, T, T]: true for positions that are attended "
    .. "to" },
  key_mask = { type = "tensor", doc = "bool [N, T]: true for positions that are not padding" },
  causal = { type = "boolean", default = false, doc = "positions attend to positions up to their "
    .. "own only" },
  cache = { type = "table", doc = "an nn.KVCache" },
}

---@param x Tensor [N, T, E] -> the same
function TransformerEncoderLayer:forward(x, options)
  local o = config.check(options, CALL, "nn.TransformerEncoderLayer")
  x = self:residual(x, 1, function(y) return (self.self_attn(y, o)) end)
  x = self:residual(x, 2, function(y) return self:feedforward(y) end)
  return x
end

return TransformerEncoderLayer
