-- stdlib/nn/CosineEmbeddingLoss.lua: 1 - cosine for similar pairs, max(0, cosine - margin) for
-- dissimilar ones. N pairs of D features.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.CosineEmbeddingLoss{margin = 0.2}
---@param x1 Tensor [N, D]
---@param x2 Tensor [N, D]
---@param target Tensor [N] of 1 (similar) or -1
return loss_layer("CosineEmbeddingLoss", "cosine_embedding_loss", "three", "margin reduction", {
  margin = { type = "number", default = 0 },
})
