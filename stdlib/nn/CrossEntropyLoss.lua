-- stdlib/nn/CrossEntropyLoss.lua: cross-entropy between logits and targets.
-- N rows, C classes.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"

local CrossEntropyLoss = Module:extend("CrossEntropyLoss")

local OPTIONS <const> = {
  weight = { type = "tensor", doc = "weight of each class [C]" },
  ignore_index = { type = "integer", default = -100, doc = "targets with this id are ignored" },
  reduction = { type = "string", default = "mean", choices = { "mean", "sum", "none" } },
  label_smoothing = { type = "number", default = 0, min = 0, max = 1,
                      doc = "fraction of the target distributed over all classes" },
}

--- nn.CrossEntropyLoss() or nn.CrossEntropyLoss{label_smoothing = 0.1}
function CrossEntropyLoss:init(options)
  local o = config.check(options, OPTIONS, "nn.CrossEntropyLoss")
  if o.weight then self:register_buffer("weight", o.weight) end
  o.weight = nil
  self.options = o
end

---@param logits Tensor [N, C]
---@param target Tensor [N] of ids
function CrossEntropyLoss:forward(logits, target)
  local loss = c.cross_entropy(logits, target, self.weight, self.options)
  return loss
end

return CrossEntropyLoss
