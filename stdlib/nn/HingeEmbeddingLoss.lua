-- stdlib/nn/HingeEmbeddingLoss.lua: the distance of similar pairs, and max(0, margin - distance)
-- for dissimilar ones.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local HingeEmbeddingLoss = Loss:extend("HingeEmbeddingLoss")

HingeEmbeddingLoss.__arguments = "| margin reduction"

HingeEmbeddingLoss.options = {
  margin = { type = "number", default = 1 },
  reduction = Loss.reduction,
}

--- nn.HingeEmbeddingLoss{margin = 2}
function HingeEmbeddingLoss:init(options) Loss.init(self, options) end

---@param distance Tensor [N, ...]
---@param target Tensor [N, ...] of 1 (similar) or -1
function HingeEmbeddingLoss:forward(distance, target)
  local loss = c.hinge_embedding_loss(distance, target, self.options)
  return loss
end

return HingeEmbeddingLoss
