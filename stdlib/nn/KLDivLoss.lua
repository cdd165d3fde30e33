-- stdlib/nn/KLDivLoss.lua: Kullback-Leibler divergence of the target from the prediction. The
-- prediction is log-probabilities. `batchmean`, the sum divided by N, is the mathematical
-- definition; `mean` divides by the number of elements.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local KLDivLoss = Loss:extend("KLDivLoss")

KLDivLoss.__arguments = "| reduction log_target"

KLDivLoss.options = {
  reduction = { type = "string", default = "mean",
                choices = { "mean", "batchmean", "sum", "none" } },
  log_target = { type = "boolean", default = false, doc = "targets are also log-probabilities" },
}

--- nn.KLDivLoss{reduction = "batchmean"}
function KLDivLoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, ...] of log-probabilities
---@param target Tensor [N, ...] of probabilities
function KLDivLoss:forward(prediction, target)
  local loss = c.kl_div(prediction, target, self.options)
  return loss
end

return KLDivLoss
