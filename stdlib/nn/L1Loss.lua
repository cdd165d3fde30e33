-- stdlib/nn/L1Loss.lua: mean absolute error.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local L1Loss = Loss:extend("L1Loss")

L1Loss.__arguments = "| reduction"

L1Loss.options = {
  reduction = Loss.reduction,
}

--- nn.L1Loss() or nn.L1Loss{reduction = "sum"}
function L1Loss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...]
function L1Loss:forward(prediction, target)
  local loss = c.l1_loss(prediction, target, self.options)
  return loss
end

return L1Loss
