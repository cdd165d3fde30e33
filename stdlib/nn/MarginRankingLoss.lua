-- stdlib/nn/MarginRankingLoss.lua: max(0, margin - target * (x1 - x2)).

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local MarginRankingLoss = Loss:extend("MarginRankingLoss")

MarginRankingLoss.__arguments = "| margin reduction"

MarginRankingLoss.options = {
  margin = { type = "number", default = 0 },
  reduction = Loss.reduction,
}

--- nn.MarginRankingLoss{margin = 0.1}
function MarginRankingLoss:init(options) Loss.init(self, options) end

---@param x1 Tensor [N, ...]
---@param x2 Tensor [N, ...]
---@param target Tensor [N, ...]: 1, x1 should be larger; -1, x2
function MarginRankingLoss:forward(x1, x2, target)
  local loss = c.margin_ranking_loss(x1, x2, target, self.options)
  return loss
end

return MarginRankingLoss
