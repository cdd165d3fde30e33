-- stdlib/nn/BCELoss.lua: cross-entropy between two probabilities.
-- A value outside 0..1 is an error on the CPU, and makes NaN elsewhere. Of logits
-- nn.BCEWithLogitsLoss is more exact.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local BCELoss = Loss:extend("BCELoss")

BCELoss.__arguments = "| weight reduction"

BCELoss.options = {
  weight = { type = "tensor", doc = "weight of each element, broadcast" },
  reduction = Loss.reduction,
}

--- nn.BCELoss()
function BCELoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, ...] of 0..1
---@param target Tensor [N, ...] of 0..1
function BCELoss:forward(prediction, target)
  local loss = c.binary_cross_entropy(prediction, target, self.weight, self.options)
  return loss
end

return BCELoss
