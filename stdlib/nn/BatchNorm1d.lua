-- stdlib/nn/BatchNorm1d.lua: batch normalization of each channel.
-- B batch, C channels, L length.
--
-- In training mode it normalizes with the mean and variance of the batch, and updates running
-- averages of them; in evaluation mode it normalizes with the running averages.

local BatchNorm = require "ltrain.nn.batch_norm"

local BatchNorm1d = BatchNorm:extend("BatchNorm1d")

BatchNorm1d.__arguments = "num_features | eps momentum affine track_running_stats"

BatchNorm1d.least_dims, BatchNorm1d.most_dims = 2, 3
BatchNorm1d.shapes = "[B, C] or [B, C, L]"

--- nn.BatchNorm1d(32)
function BatchNorm1d:init(num_features, options) BatchNorm.init(self, num_features, options) end

---@param x Tensor [B, C] or [B, C, L] -> the same
function BatchNorm1d:forward(x)
  local y = BatchNorm.forward(self, x)
  return y
end

return BatchNorm1d
