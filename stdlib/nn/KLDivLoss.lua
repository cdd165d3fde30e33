-- stdlib/nn/KLDivLoss.lua: Kullback-Leibler divergence of the target from the prediction. The
-- prediction is log-probabilities. `batchmean`, the sum divided by N, is the mathematical
-- definition; `mean` divides by the number of elements.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.KLDivLoss{reduction = "batchmean"}
---@param prediction Tensor [N, ...] of log-probabilities
---@param target Tensor [N, ...] of probabilities
return loss_layer("KLDivLoss", "kl_div", "two", "reduction log_target", {
  reduction = { type = "string", default = "mean",
                choices = { "mean", "batchmean", "sum", "none" } },
  log_target = { type = "boolean", default = false, doc = "targets are also log-probabilities" },
})
