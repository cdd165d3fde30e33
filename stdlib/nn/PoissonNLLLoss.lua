-- stdlib/nn/PoissonNLLLoss.lua: negative log-likelihood of a Poisson distribution with given rate.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.PoissonNLLLoss()
---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...] of counts
return loss_layer("PoissonNLLLoss", "poisson_nll_loss", "two", "log_input full eps reduction", {
  log_input = { type = "boolean", default = true, doc = "the prediction is the logarithm of the "
    .. "rate" },
  full = { type = "boolean", default = false,
           doc = "add Stirling's approximation of log(target!)" },
  eps = { type = "number", default = 1e-8, doc = "added to the rate before taking its logarithm" },
})
