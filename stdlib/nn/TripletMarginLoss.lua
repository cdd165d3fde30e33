-- stdlib/nn/TripletMarginLoss.lua: max(0, margin + |anchor - positive| - |anchor - negative|).
-- Balntas et al.: Learning local feature descriptors with triplets, 2016.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local TripletMarginLoss = Loss:extend("TripletMarginLoss")

TripletMarginLoss.__arguments = "| margin p eps swap reduction"

TripletMarginLoss.options = {
  margin = { type = "number", default = 1, above = 0 },
  p = { type = "number", default = 2, doc = "of the norm |x|" },
  eps = { type = "number", default = 1e-6, doc = "added to each difference" },
  swap = { type = "boolean", default = false,
           doc = "use the positive as the anchor if it is closer to the negative" },
  reduction = Loss.reduction,
}

--- nn.TripletMarginLoss{margin = 0.5}
function TripletMarginLoss:init(options) Loss.init(self, options) end

---@param anchor Tensor [N, D]
---@param positive Tensor [N, D]
---@param negative Tensor [N, D]
function TripletMarginLoss:forward(anchor, positive, negative)
  local loss = c.triplet_margin_loss(anchor, positive, negative, self.options)
  return loss
end

return TripletMarginLoss
