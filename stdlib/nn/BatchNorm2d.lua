-- stdlib/nn/BatchNorm2d.lua: batch normalization of each channel.
-- B batch, C channels, H height, W width.
--
-- In training mode it normalizes with the mean and variance of the batch, and updates running
-- averages of them; in evaluation mode it normalizes with the running averages.

local BatchNorm = require "ltrain.nn.batch_norm"

local BatchNorm2d = BatchNorm:extend("BatchNorm2d")

BatchNorm2d.__arguments = "num_features | eps momentum affine track_running_stats"

BatchNorm2d.least_dims, BatchNorm2d.most_dims = 4, 4
BatchNorm2d.shapes = "[B, C, H, W]"

--- nn.BatchNorm2d(32)
function BatchNorm2d:init(num_features, options) BatchNorm.init(self, num_features, options) end

---@param x Tensor [B, C, H, W] -> the same
function BatchNorm2d:forward(x)
  local y = BatchNorm.forward(self, x)
  return y
end

return BatchNorm2d
