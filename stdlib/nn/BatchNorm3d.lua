-- stdlib/nn/BatchNorm3d.lua: batch normalization of each channel.
-- B batch, C channels, D depth, H height, W width.
--
-- In training mode it normalizes with the mean and variance of the batch, and updates running
-- averages of them; in evaluation mode it normalizes with the running averages.

local BatchNorm = require "ltrain.nn.batch_norm"

local BatchNorm3d = BatchNorm:extend("BatchNorm3d")

BatchNorm3d.__arguments = "num_features | eps momentum affine track_running_stats"

BatchNorm3d.least_dims, BatchNorm3d.most_dims = 5, 5
BatchNorm3d.shapes = "[B, C, D, H, W]"

--- nn.BatchNorm3d(32)
function BatchNorm3d:init(num_features, options) BatchNorm.init(self, num_features, options) end

---@param x Tensor [B, C, D, H, W] -> the same
function BatchNorm3d:forward(x)
  local y = BatchNorm.forward(self, x)
  return y
end

return BatchNorm3d
