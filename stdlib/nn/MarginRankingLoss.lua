-- stdlib/nn/MarginRankingLoss.lua: max(0, margin - target * (x1 - x2)).

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.MarginRankingLoss{margin = 0.1}
---@param x1 Tensor [N, ...]
---@param x2 Tensor [N, ...]
---@param target Tensor [N, ...]: 1, x1 should be larger; -1, x2
return loss_layer("MarginRankingLoss", "margin_ranking_loss", "three", "margin reduction", {
  margin = { type = "number", default = 0 },
})
