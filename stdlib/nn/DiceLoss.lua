-- stdlib/nn/DiceLoss.lua: 1 - the Dice coefficient: computed for each sample and channel (N, C)
-- over the other dims.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local DiceLoss = Loss:extend("DiceLoss")

DiceLoss.options = {
  smooth = { type = "number", default = 1e-5, min = 0,
             doc = "added to numerator and denominator" },
  reduction = Loss.reduction,
}

--- nn.DiceLoss()
function DiceLoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, C, ...] of probabilities
---@param target Tensor [N, C, ...] of 0..1
function DiceLoss:forward(prediction, target)
  local loss = c.dice_loss(prediction, target, self.options)
  return loss
end

return DiceLoss
