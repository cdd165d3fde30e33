-- stdlib/nn/HingeEmbeddingLoss.lua: the distance of similar pairs, and max(0, margin - distance)
-- for dissimilar ones.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.HingeEmbeddingLoss{margin = 2}
---@param distance Tensor [N, ...]
---@param target Tensor [N, ...] of 1 (similar) or -1
return loss_layer("HingeEmbeddingLoss", "hinge_embedding_loss", "two", "margin reduction", {
  margin = { type = "number", default = 1 },
})
