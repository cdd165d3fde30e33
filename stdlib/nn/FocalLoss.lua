-- stdlib/nn/FocalLoss.lua: focal loss: binary cross-entropy with logits that down-weights
-- well-classified samples. Lin et al.: Focal Loss for Dense Object Detection, 2017.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local FocalLoss = Loss:extend("FocalLoss")

FocalLoss.options = {
  alpha = { type = "number", default = 0.25, max = 1,
            doc = "weight of positive targets, 1 - alpha that of others; negative: no weights" },
  gamma = { type = "number", default = 2, min = 0, doc = "focusing parameter" },
  reduction = Loss.reduction,
}

--- nn.FocalLoss{gamma = 1}
function FocalLoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, ...] of logits
---@param target Tensor [N, ...] of 0..1
function FocalLoss:forward(prediction, target)
  local loss = c.sigmoid_focal_loss(prediction, target, self.options)
  return loss
end

return FocalLoss
