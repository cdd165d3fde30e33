-- stdlib/nn/ReplicationPad3d.lua: replication padding, in three dims.
-- B batch, C channels, D depth, H height, W width.

local Padding = require "ltrain.nn.padding"

local ReplicationPad3d = Padding:extend("ReplicationPad3d")

ReplicationPad3d.__arguments = "padding"

ReplicationPad3d.dims, ReplicationPad3d.mode = 3, "replicate"

--- nn.ReplicationPad3d(1): a number for all sides, or two for each dim, the last one first
function ReplicationPad3d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> the same, padded
function ReplicationPad3d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ReplicationPad3d
