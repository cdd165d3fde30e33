-- stdlib/nn/L1Loss.lua: mean absolute error.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.L1Loss() or nn.L1Loss{reduction = "sum"}
---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...]
return loss_layer("L1Loss", "l1_loss", "two", "reduction")
