-- stdlib/nn/GaussianNLLLoss.lua: negative log-likelihood of a normal distribution with given mean
-- and variance.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local GaussianNLLLoss = Loss:extend("GaussianNLLLoss")

GaussianNLLLoss.__arguments = "| full eps reduction"

GaussianNLLLoss.options = {
  full = { type = "boolean", default = false, doc = "add log(2 pi) / 2" },
  eps = { type = "number", default = 1e-6, above = 0, doc = "lower bound of the variance" },
  reduction = Loss.reduction,
}

--- nn.GaussianNLLLoss()
function GaussianNLLLoss:init(options) Loss.init(self, options) end

---@param mean Tensor [N, D]
---@param target Tensor [N, D]
---@param variance Tensor [N, D], [N, 1] or [N]
function GaussianNLLLoss:forward(mean, target, variance)
  local loss = c.gaussian_nll_loss(mean, target, variance, self.options)
  return loss
end

return GaussianNLLLoss
