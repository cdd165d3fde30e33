-- stdlib/nn/MultiLabelMarginLoss.lua: multi-label hinge loss.
-- N rows, C classes; a row of targets lists ids and ends at the first -1.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local MultiLabelMarginLoss = Loss:extend("MultiLabelMarginLoss")

MultiLabelMarginLoss.__arguments = "| reduction"

MultiLabelMarginLoss.options = {
  reduction = Loss.reduction,
}

--- nn.MultiLabelMarginLoss()
function MultiLabelMarginLoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, C]
---@param target Tensor [N, C] of ids
function MultiLabelMarginLoss:forward(prediction, target)
  local loss = c.multilabel_margin_loss(prediction, target, self.options)
  return loss
end

return MultiLabelMarginLoss
