-- stdlib/models/mlp.lua: a multilayer perceptron, with the names of torchvision.ops.MLP.
-- B batch, F features.

local config = require "ltrain.core.config"
local nn = require "ltrain.nn"

local MLP = nn.Sequential:extend("MLP")
MLP.__arguments = "|"

local OPTIONS <const> = {
  in_features = { type = "integer", required = true, min = 1 },
  hidden = { type = "table", default = {}, doc = "widths of the hidden layers" },
  num_classes = { type = "integer", required = true, min = 1, doc = "outputs" },
  norm = { type = "boolean", default = false, doc = "batch normalization after hidden layers" },
  dropout = { type = "number", default = 0, min = 0, max = 1 },
}

--- lt.models.mlp{in_features = 784, hidden = {256, 128}, num_classes = 10}
function MLP:init(options)
  local o = config.check(options, OPTIONS, "models.mlp")
  self:save_hyperparameters(o)
  local width = o.in_features
  for i, next_width in ipairs(o.hidden) do
    config.argument(next_width, "integer", "models.mlp", ("hidden[%d]"):format(i), { min = 1 })
    self:append(nn.Linear(width, next_width))
    if o.norm then self:append(nn.BatchNorm1d(next_width)) end
    self:append(nn.ReLU())
    self:append(nn.Dropout(o.dropout))
    width = next_width
  end
  self:append(nn.Linear(width, o.num_classes))
  self:append(nn.Dropout(o.dropout))
end

---@param x Tensor [B, F] -> logits [B, num_classes]
function MLP:forward(x)
  local logits = nn.Sequential.forward(self, x:flatten(2))
  return logits
end

return MLP
