-- stdlib/nn/CosineEmbeddingLoss.lua: 1 - cosine for similar pairs, max(0, cosine - margin) for
-- dissimilar ones. N pairs of D features.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local CosineEmbeddingLoss = Loss:extend("CosineEmbeddingLoss")

CosineEmbeddingLoss.__arguments = "| margin reduction"

CosineEmbeddingLoss.options = {
  margin = { type = "number", default = 0 },
  reduction = Loss.reduction,
}

--- nn.CosineEmbeddingLoss{margin = 0.2}
function CosineEmbeddingLoss:init(options) Loss.init(self, options) end

---@param x1 Tensor [N, D]
---@param x2 Tensor [N, D]
---@param target Tensor [N] of 1 (similar) or -1
function CosineEmbeddingLoss:forward(x1, x2, target)
  local loss = c.cosine_embedding_loss(x1, x2, target, self.options)
  return loss
end

return CosineEmbeddingLoss
