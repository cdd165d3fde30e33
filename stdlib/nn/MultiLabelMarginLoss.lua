-- stdlib/nn/MultiLabelMarginLoss.lua: multi-label hinge loss.
-- N rows, C classes; a row of targets lists ids and ends at the first -1.

local loss_layer = require "ltrain.nn.loss_layer"

--- nn.MultiLabelMarginLoss()
---@param prediction Tensor [N, C]
---@param target Tensor [N, C] of ids
return loss_layer("MultiLabelMarginLoss", "multilabel_margin_loss", "two", "reduction")
