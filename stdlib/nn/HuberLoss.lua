-- stdlib/nn/HuberLoss.lua: squared error / 2 up to `delta`, beyond it linear with slope `delta`.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local HuberLoss = Loss:extend("HuberLoss")

HuberLoss.__arguments = "| reduction delta"

HuberLoss.options = {
  delta = { type = "number", default = 1, above = 0 },
  reduction = Loss.reduction,
}

--- nn.HuberLoss{delta = 0.5}
function HuberLoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...]
function HuberLoss:forward(prediction, target)
  local loss = c.huber_loss(prediction, target, self.options)
  return loss
end

return HuberLoss
