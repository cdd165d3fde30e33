-- stdlib/nn/TripletMarginLoss.lua: max(0, margin + |anchor - positive| - |anchor - negative|).
-- Balntas et al.: Learning local feature descriptors with triplets, 2016.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.TripletMarginLoss{margin = 0.5}
---@param anchor Tensor [N, D]
---@param positive Tensor [N, D]
---@param negative Tensor [N, D]
return loss_layer("TripletMarginLoss", "triplet_margin_loss", "three",
  "margin p eps swap reduction", {
  margin = { type = "number", default = 1, above = 0 },
  p = { type = "number", default = 2, doc = "of the norm |x|" },
  eps = { type = "number", default = 1e-6, doc = "added to each difference" },
  swap = { type = "boolean", default = false,
           doc = "use the positive as the anchor if it is closer to the negative" },
})
