-- stdlib/nn/SmoothL1Loss.lua: squared error / (2 beta) up to `beta`, beyond it absolute error
-- minus beta / 2.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local SmoothL1Loss = Loss:extend("SmoothL1Loss")

SmoothL1Loss.__arguments = "| reduction beta"

SmoothL1Loss.options = {
  beta = { type = "number", default = 1, min = 0 },
  reduction = Loss.reduction,
}

--- nn.SmoothL1Loss{beta = 0.5}
function SmoothL1Loss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...]
function SmoothL1Loss:forward(prediction, target)
  local loss = c.smooth_l1_loss(prediction, target, self.options)
  return loss
end

return SmoothL1Loss
