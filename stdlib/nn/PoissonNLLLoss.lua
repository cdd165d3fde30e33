-- stdlib/nn/PoissonNLLLoss.lua: negative log-likelihood of a Poisson distribution with given rate.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local PoissonNLLLoss = Loss:extend("PoissonNLLLoss")

PoissonNLLLoss.__arguments = "| log_input full eps reduction"

PoissonNLLLoss.options = {
  log_input = { type = "boolean", default = true, doc = "the prediction is the logarithm of the "
    .. "rate" },
  full = { type = "boolean", default = false,
           doc = "add Stirling's approximation of log(target!)" },
  eps = { type = "number", default = 1e-8, doc = "added to the rate before taking its logarithm" },
  reduction = Loss.reduction,
}

--- nn.PoissonNLLLoss()
function PoissonNLLLoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, ...]
---@param target Tensor [N, ...] of counts
function PoissonNLLLoss:forward(prediction, target)
  local loss = c.poisson_nll_loss(prediction, target, self.options)
  return loss
end

return PoissonNLLLoss
