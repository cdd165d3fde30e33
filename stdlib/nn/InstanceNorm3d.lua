-- stdlib/nn/InstanceNorm3d.lua: instance normalization: each channel of each element is normalized
-- to mean 0 and variance 1. B batch, C channels, D depth, H height, W width.
--
-- With `track_running_stats` it keeps running averages, and uses them in evaluation mode.

local InstanceNorm = require "ltrain.nn.instance_norm"

local InstanceNorm3d = InstanceNorm:extend("InstanceNorm3d")

InstanceNorm3d.__arguments = "num_features | eps momentum affine track_running_stats"

InstanceNorm3d.least_dims, InstanceNorm3d.most_dims = 4, 5
InstanceNorm3d.shapes = "[B, C, D, H, W] or [C, D, H, W]"

--- nn.InstanceNorm3d(32) or nn.InstanceNorm3d(32, {affine = true})
function InstanceNorm3d:init(num_features, options)
  InstanceNorm.init(self, num_features, options)
end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> the same
function InstanceNorm3d:forward(x)
  local y = InstanceNorm.forward(self, x)
  return y
end

return InstanceNorm3d
