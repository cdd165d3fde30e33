-- stdlib/nn/SyncBatchNorm.lua: batch normalization over the samples of all ranks.
-- B batch, C channels.
--
-- With the Trainer's `sync_batchnorm` every batch normalization layer does this; this one always
-- does.

local BatchNorm = require "ltrain.nn.batch_norm"

local SyncBatchNorm = BatchNorm:extend("SyncBatchNorm")

SyncBatchNorm.__arguments = "num_features | eps momentum affine track_running_stats"

SyncBatchNorm.least_dims, SyncBatchNorm.most_dims = 2, 8
SyncBatchNorm.shapes = "[B, C, ...]"
SyncBatchNorm._always = true

--- nn.SyncBatchNorm(32)
function SyncBatchNorm:init(num_features, options) BatchNorm.init(self, num_features, options) end

---@param x Tensor [B, C, ...] -> the same
function SyncBatchNorm:forward(x)
  local y = BatchNorm.forward(self, x)
  return y
end

return SyncBatchNorm
