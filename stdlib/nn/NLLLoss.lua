-- stdlib/nn/NLLLoss.lua: negative log-likelihood: minus the log-probability of the target class.
-- N rows, C classes.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.NLLLoss()
---@param log_probabilities Tensor [N, C, ...]
---@param target Tensor [N, ...] of ids
return loss_layer("NLLLoss", "nll_loss", "weighted", "weight ignore_index reduction", {
  weight = { type = "tensor", doc = "weight of each class [C]" },
  ignore_index = { type = "integer", default = -100, doc = "targets with this id are ignored" },
})
