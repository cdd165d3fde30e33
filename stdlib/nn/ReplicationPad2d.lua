-- stdlib/nn/ReplicationPad2d.lua: replication padding, in two dims.
-- B batch, C channels, H height, W width.

local Padding = require "ltrain.nn.padding"

local ReplicationPad2d = Padding:extend("ReplicationPad2d")

ReplicationPad2d.__arguments = "padding"

ReplicationPad2d.dims, ReplicationPad2d.mode = 2, "replicate"

--- nn.ReplicationPad2d(1): a number for all sides, or two for each dim, the last one first
function ReplicationPad2d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, H, W] or [C, H, W] -> the same, padded
function ReplicationPad2d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ReplicationPad2d
