-- stdlib/nn/DiceLoss.lua: 1 - the Dice coefficient: computed for each sample and channel (N, C)
-- over the other dims.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.DiceLoss()
---@param prediction Tensor [N, C, ...] of probabilities
---@param target Tensor [N, C, ...] of 0..1
return loss_layer("DiceLoss", "dice_loss", "two", nil, {
  smooth = { type = "number", default = 1e-5, min = 0,
             doc = "added to numerator and denominator" },
})
