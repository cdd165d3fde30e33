-- stdlib/nn/MaxUnpool3d.lua: the inverse of max pooling, at the indices that it returned, in three
-- dims. B batch, C channels, D depth, H height, W width.

local Unpool = require "ltrain.nn.pooling".Unpool

local MaxUnpool3d = Unpool:extend("MaxUnpool3d")

MaxUnpool3d.__arguments = "kernel_size | stride padding"

MaxUnpool3d.dims, MaxUnpool3d.op = 3, "max_unpool3d"

--- nn.MaxUnpool3d(2)
function MaxUnpool3d:init(kernel_size, options) Unpool.init(self, kernel_size, options) end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> [B, C, D', H', W']
function MaxUnpool3d:forward(x, indices, output_size)
  local y = Unpool.forward(self, x, indices, output_size)
  return y
end

return MaxUnpool3d
