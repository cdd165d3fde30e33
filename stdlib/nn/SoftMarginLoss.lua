-- stdlib/nn/SoftMarginLoss.lua: log(1 + exp(-target * prediction)).

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.SoftMarginLoss()
---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...] of 1 or -1
return loss_layer("SoftMarginLoss", "soft_margin_loss", "two", "reduction")
