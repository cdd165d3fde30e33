-- stdlib/nn/FocalLoss.lua: focal loss: binary cross-entropy with logits that down-weights
-- well-classified samples. Lin et al.: Focal Loss for Dense Object Detection, 2017.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.FocalLoss{gamma = 1}
---@param prediction Tensor [N, ...] of logits
---@param target Tensor [N, ...] of 0..1
return loss_layer("FocalLoss", "sigmoid_focal_loss", "two", nil, {
  alpha = { type = "number", default = 0.25, max = 1,
            doc = "weight of positive targets, 1 - alpha that of others; negative: no weights" },
  gamma = { type = "number", default = 2, min = 0, doc = "focusing parameter" },
})
