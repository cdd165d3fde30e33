-- stdlib/nn/BCELoss.lua: cross-entropy between two probabilities.
-- A value outside 0..1 is an error on the CPU, and makes NaN elsewhere. Of logits
-- nn.BCEWithLogitsLoss is more exact.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.BCELoss()
---@param prediction Tensor [N, ...] of 0..1
---@param target Tensor [N, ...] of 0..1
return loss_layer("BCELoss", "binary_cross_entropy", "weighted", "weight reduction", {
  weight = { type = "tensor", doc = "weight of each element, broadcast" },
})
