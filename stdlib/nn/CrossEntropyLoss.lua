-- stdlib/nn/CrossEntropyLoss.lua: cross-entropy between logits and targets.
-- N rows, C classes.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.CrossEntropyLoss() or nn.CrossEntropyLoss{label_smoothing = 0.1}
---@param logits Tensor [N, C, ...]
---@param target Tensor [N, ...] of ids, or [N, C, ...] of probabilities
return loss_layer("CrossEntropyLoss", "cross_entropy", "weighted",
  "weight ignore_index reduction label_smoothing", {
  weight = { type = "tensor", doc = "weight of each class [C]" },
  ignore_index = { type = "integer", default = -100, doc = "targets with this id are ignored" },
  label_smoothing = { type = "number", default = 0, min = 0, max = 1,
                      doc = "fraction of the target distributed over all classes" },
})
