-- stdlib/nn/GaussianNLLLoss.lua: negative log-likelihood of a normal distribution with given mean
-- and variance.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.GaussianNLLLoss()
---@param mean Tensor [N, D]
---@param target Tensor [N, D]
---@param variance Tensor [N, D], [N, 1] or [N]
return loss_layer("GaussianNLLLoss", "gaussian_nll_loss", "three", "full eps reduction", {
  full = { type = "boolean", default = false, doc = "add log(2 pi) / 2" },
  eps = { type = "number", default = 1e-6, above = 0, doc = "lower bound of the variance" },
})
