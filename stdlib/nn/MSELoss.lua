-- stdlib/nn/MSELoss.lua: mean squared error.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local MSELoss = Loss:extend("MSELoss")

MSELoss.__arguments = "| reduction"

MSELoss.options = {
  reduction = Loss.reduction,
}

--- nn.MSELoss() or nn.MSELoss{reduction = "sum"}
function MSELoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...]
function MSELoss:forward(prediction, target)
  local loss = c.mse_loss(prediction, target, self.options)
  return loss
end

return MSELoss
