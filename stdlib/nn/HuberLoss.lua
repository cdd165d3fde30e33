-- stdlib/nn/HuberLoss.lua: squared error / 2 up to `delta`, beyond it linear with slope `delta`.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.HuberLoss{delta = 0.5}
---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...]
return loss_layer("HuberLoss", "huber_loss", "two", "reduction delta", {
  delta = { type = "number", default = 1, above = 0 },
})
