-- stdlib/nn/NLLLoss.lua: negative log-likelihood: minus the log-probability of the target class.
-- N rows, C classes.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local NLLLoss = Loss:extend("NLLLoss")

NLLLoss.__arguments = "| weight ignore_index reduction"

NLLLoss.options = {
  weight = { type = "tensor", doc = "weight of each class [C]" },
  ignore_index = { type = "integer", default = -100, doc = "targets with this id are ignored" },
  reduction = Loss.reduction,
}

--- nn.NLLLoss()
function NLLLoss:init(options) Loss.init(self, options) end

---@param log_probabilities Tensor [N, C, ...]
---@param target Tensor [N, ...] of ids
function NLLLoss:forward(log_probabilities, target)
  local loss = c.nll_loss(log_probabilities, target, self.weight, self.options)
  return loss
end

return NLLLoss
