-- stdlib/nn/MultiLabelSoftMarginLoss.lua: binary cross-entropy with logits, averaged over the
-- classes. N rows, C labels.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local MultiLabelSoftMarginLoss = Loss:extend("MultiLabelSoftMarginLoss")

MultiLabelSoftMarginLoss.__arguments = "| weight reduction"

MultiLabelSoftMarginLoss.options = {
  weight = { type = "tensor", doc = "weight of each label [C]" },
  reduction = Loss.reduction,
}

--- nn.MultiLabelSoftMarginLoss()
function MultiLabelSoftMarginLoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, C] of logits
---@param target Tensor [N, C] of 0..1
function MultiLabelSoftMarginLoss:forward(prediction, target)
  local loss = c.multilabel_soft_margin_loss(prediction, target, self.weight, self.options)
  return loss
end

return MultiLabelSoftMarginLoss
