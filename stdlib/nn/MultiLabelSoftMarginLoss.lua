-- stdlib/nn/MultiLabelSoftMarginLoss.lua: binary cross-entropy with logits, averaged over the
-- classes. N rows, C labels.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.MultiLabelSoftMarginLoss()
---@param prediction Tensor [N, C] of logits
---@param target Tensor [N, C] of 0..1
return loss_layer("MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", "weighted",
  "weight reduction", {
  weight = { type = "tensor", doc = "weight of each label [C]" },
})
