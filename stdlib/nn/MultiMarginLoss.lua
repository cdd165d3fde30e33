-- stdlib/nn/MultiMarginLoss.lua: multi-class hinge loss.
-- N rows, C classes.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

local MultiMarginLoss = Loss:extend("MultiMarginLoss")

MultiMarginLoss.__arguments = "| p margin weight reduction"

MultiMarginLoss.options = {
  p = { type = "integer", default = 1, min = 1, max = 2, doc = "power of the hinge" },
  margin = { type = "number", default = 1 },
  weight = { type = "tensor", doc = "weight of each class [C]" },
  reduction = Loss.reduction,
}

--- nn.MultiMarginLoss()
function MultiMarginLoss:init(options) Loss.init(self, options) end

---@param prediction Tensor [N, C]
---@param target Tensor [N] of ids
function MultiMarginLoss:forward(prediction, target)
  local o = self.options
  local loss = c.multi_margin_loss(prediction, target, o.p, o.margin, self.weight, o.reduction)
  return loss
end

return MultiMarginLoss
