-- stdlib/nn/CrossEntropyLoss.lua: cross-entropy between logits and targets.
-- N rows, C classes.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local CrossEntropyLoss = Loss:extend("CrossEntropyLoss")

CrossEntropyLoss.__arguments = "| weight ignore_index reduction label_smoothing"

CrossEntropyLoss.options = {
  weight = { type = "tensor", doc = "weight of each class [C]" },
  ignore_index = { type = "integer", default = -100, doc = "targets with this id are ignored" },
  reduction = Loss.reduction,
  label_smoothing = { type = "number", default = 0, min = 0, max = 1,
                      doc = "fraction of the target distributed over all classes" },
}

--- nn.CrossEntropyLoss() or nn.CrossEntropyLoss{label_smoothing = 0.1}
function CrossEntropyLoss:init(options) Loss.init(self, options) end

---@param logits Tensor [N, C, ...]
---@param target Tensor [N, ...] of ids, or [N, C, ...] of probabilities
function CrossEntropyLoss:forward(logits, target)
  local loss = c.cross_entropy(logits, target, self.weight, self.options)
  return loss
end

return CrossEntropyLoss
