-- stdlib/nn/SoftMarginLoss.lua: log(1 + exp(-target * prediction)).

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local SoftMarginLoss = Loss:extend("SoftMarginLoss")

SoftMarginLoss.__arguments = "| reduction"

SoftMarginLoss.options = {
  reduction = Loss.reduction,
}

--- nn.SoftMarginLoss()
function SoftMarginLoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...] of 1 or -1
function SoftMarginLoss:forward(prediction, target)
  local loss = c.soft_margin_loss(prediction, target, self.options)
  return loss
end

return SoftMarginLoss
