-- stdlib/nn/BatchNormNd.lua: batch normalization of each channel.
-- B batch, C channels, ... dims.
--
-- In training mode it normalizes with the mean and variance of the batch, and updates running
-- averages of them; in evaluation mode it normalizes with the running averages.

local BatchNorm = require "ltrain.nn.batch_norm"
local dims_family = require "ltrain.core.dims_family"

return dims_family.extend(BatchNorm, "BatchNormNd", function(BatchNormNd, n)
  BatchNormNd.__arguments = "num_features | eps momentum affine track_running_stats"
  BatchNormNd.least_dims, BatchNormNd.most_dims = n == 1 and 2 or n + 2, n + 2
  BatchNormNd.shapes = (n == 1 and "[B, C] or " or "") .. dims_family.text("[B, C, ...]", n)

  --- nn.BatchNormNd(32)
  function BatchNormNd:init(num_features, options) BatchNorm.init(self, num_features, options) end

  ---@param x Tensor [B, C, ...] -> the same; BatchNorm1d takes [B, C] too
  function BatchNormNd:forward(x)
    local y = BatchNorm.forward(self, x)
    return y
  end
end)
