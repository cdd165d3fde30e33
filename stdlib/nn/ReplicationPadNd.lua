-- stdlib/nn/ReplicationPadNd.lua: replication padding, in N dims.
-- B batch, C channels, ... dims.

local Padding = require "ltrain.nn.padding"
local dims_family = require "ltrain.core.dims_family"

return dims_family.extend(Padding, "ReplicationPadNd", function(ReplicationPadNd)
  ReplicationPadNd.__arguments, ReplicationPadNd.mode = "padding", "replicate"

  --- nn.ReplicationPadNd(1): a number for all sides, or two for each dim, the last one first
  function ReplicationPadNd:init(padding) Padding.init(self, padding) end

  ---@param x Tensor [B, C, ...] or [C, ...] -> the same, padded
  function ReplicationPadNd:forward(x)
    local y = Padding.forward(self, x)
    return y
  end
end)
