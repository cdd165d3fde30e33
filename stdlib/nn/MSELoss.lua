-- stdlib/nn/MSELoss.lua: mean squared error.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.MSELoss() or nn.MSELoss{reduction = "sum"}
---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...]
return loss_layer("MSELoss", "mse_loss", "two", "reduction")
