-- stdlib/nn/ReplicationPad1d.lua: replication padding, in one dim.
-- B batch, C channels, L length.

local Padding = require "ltrain.nn.padding"

local ReplicationPad1d = Padding:extend("ReplicationPad1d")

ReplicationPad1d.__arguments = "padding"

ReplicationPad1d.dims, ReplicationPad1d.mode = 1, "replicate"

--- nn.ReplicationPad1d(1): a number for all sides, or two for each dim, the last one first
function ReplicationPad1d:init(padding) Padding.init(self, padding) end

---@param x Tensor [B, C, L] or [C, L] -> the same, padded
function ReplicationPad1d:forward(x)
  local y = Padding.forward(self, x)
  return y
end

return ReplicationPad1d
