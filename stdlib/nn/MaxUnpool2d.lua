-- stdlib/nn/MaxUnpool2d.lua: the inverse of max pooling, at the indices that it returned, in two
-- dims. B batch, C channels, H height, W width.

local Unpool = require "ltrain.nn.pooling".Unpool

local MaxUnpool2d = Unpool:extend("MaxUnpool2d")

MaxUnpool2d.__arguments = "kernel_size | stride padding"

MaxUnpool2d.dims, MaxUnpool2d.op = 2, "max_unpool2d"

--- nn.MaxUnpool2d(2)
function MaxUnpool2d:init(kernel_size, options) Unpool.init(self, kernel_size, options) end

---@param x Tensor [B, C, H, W] or [C, H, W] -> [B, C, H', W']
function MaxUnpool2d:forward(x, indices, output_size)
  local y = Unpool.forward(self, x, indices, output_size)
  return y
end

return MaxUnpool2d
