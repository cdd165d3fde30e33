-- stdlib/nn/InstanceNorm1d.lua: instance normalization: each channel of each element is normalized
-- to mean 0 and variance 1. B batch, C channels, L length.
--
-- With `track_running_stats` it keeps running averages, and uses them in evaluation mode.

local InstanceNorm = require "ltrain.nn.instance_norm"

local InstanceNorm1d = InstanceNorm:extend("InstanceNorm1d")

InstanceNorm1d.__arguments = "num_features | eps momentum affine track_running_stats"

InstanceNorm1d.least_dims, InstanceNorm1d.most_dims = 2, 3
InstanceNorm1d.shapes = "[B, C, L] or [C, L]"

--- nn.InstanceNorm1d(32) or nn.InstanceNorm1d(32, {affine = true})
function InstanceNorm1d:init(num_features, options)
  InstanceNorm.init(self, num_features, options)
end

---@param x Tensor [B, C, L] or [C, L] -> the same
function InstanceNorm1d:forward(x)
  local y = InstanceNorm.forward(self, x)
  return y
end

return InstanceNorm1d
