-- stdlib/nn/SmoothL1Loss.lua: squared error / (2 beta) up to `beta`, beyond it absolute error
-- minus beta / 2.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.SmoothL1Loss{beta = 0.5}
---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...]
return loss_layer("SmoothL1Loss", "smooth_l1_loss", "two", "reduction beta", {
  beta = { type = "number", default = 1, min = 0 },
})
