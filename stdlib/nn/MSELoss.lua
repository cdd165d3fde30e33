-- stdlib/nn/MSELoss.lua: mean squared error.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"

local MSELoss = Module:extend("MSELoss")

local OPTIONS <const> = {
  reduction = { type = "string", default = "mean", choices = { "mean", "sum", "none" } },
}

--- nn.MSELoss() or nn.MSELoss{reduction = "sum"}
function MSELoss:init(options)
  self.reduction = config.check(options, OPTIONS, "nn.MSELoss").reduction
end

---@param prediction Tensor [N]
---@param target Tensor [N]
function MSELoss:forward(prediction, target)
  local loss = c.mse_loss(prediction, target, { reduction = self.reduction })
  return loss
end

function MSELoss:extra_repr()
  return self.reduction == "mean" and "" or ("{reduction = %q}"):format(self.reduction)
end

return MSELoss
