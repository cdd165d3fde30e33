-- stdlib/nn/ReflectionPadNd.lua: reflection padding, in N dims.
-- B batch, C channels, ... dims.

local Padding = require "ltrain.nn.padding"
local dims_family = require "ltrain.core.dims_family"

return dims_family.extend(Padding, "ReflectionPadNd", function(ReflectionPadNd)
  ReflectionPadNd.__arguments, ReflectionPadNd.mode = "padding", "reflect"

  --- nn.ReflectionPadNd(1): a number for all sides, or two for each dim, the last one first
  function ReflectionPadNd:init(padding) Padding.init(self, padding) end

  ---@param x Tensor [B, C, ...] or [C, ...] -> the same, padded
  function ReflectionPadNd:forward(x)
    local y = Padding.forward(self, x)
    return y
  end
end)
