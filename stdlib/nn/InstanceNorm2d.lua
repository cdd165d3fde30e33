-- stdlib/nn/InstanceNorm2d.lua: instance normalization: each channel of each element is normalized
-- to mean 0 and variance 1. B batch, C channels, H height, W width.
--
-- With `track_running_stats` it keeps running averages, and uses them in evaluation mode.

local InstanceNorm = require "ltrain.nn.instance_norm"

local InstanceNorm2d = InstanceNorm:extend("InstanceNorm2d")

InstanceNorm2d.__arguments = "num_features | eps momentum affine track_running_stats"

InstanceNorm2d.least_dims, InstanceNorm2d.most_dims = 3, 4
InstanceNorm2d.shapes = "[B, C, H, W] or [C, H, W]"

--- nn.InstanceNorm2d(32) or nn.InstanceNorm2d(32, {affine = true})
function InstanceNorm2d:init(num_features, options)
  InstanceNorm.init(self, num_features, options)
end

---@param x Tensor [B, C, H, W] or [C, H, W] -> the same
function InstanceNorm2d:forward(x)
  local y = InstanceNorm.forward(self, x)
  return y
end

return InstanceNorm2d
