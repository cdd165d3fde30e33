-- stdlib/nn/BCEWithLogitsLoss.lua: cross-entropy between sigmoid(prediction) and probabilities.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local BCEWithLogitsLoss = Loss:extend("BCEWithLogitsLoss")

BCEWithLogitsLoss.__arguments = "| weight reduction pos_weight"

BCEWithLogitsLoss.options = {
  weight = { type = "tensor", doc = "weight of each element, broadcast" },
  pos_weight = { type = "tensor", doc = "factor of the positive targets' loss, broadcast" },
  reduction = Loss.reduction,
}

--- nn.BCEWithLogitsLoss{pos_weight = lt.tensor{3.0}}
function BCEWithLogitsLoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, ...] of logits
---@param target Tensor [N, ...] of 0..1
function BCEWithLogitsLoss:forward(prediction, target)
  local loss = c.binary_cross_entropy_with_logits(prediction, target, self.weight,
    self.options.reduction, self.pos_weight)
  return loss
end

return BCEWithLogitsLoss
