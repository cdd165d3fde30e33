-- stdlib/nn/MaxUnpool1d.lua: the inverse of max pooling, at the indices that it returned, in one
-- dim. B batch, C channels, L length.

local Unpool = require "ltrain.nn.pooling".Unpool

local MaxUnpool1d = Unpool:extend("MaxUnpool1d")

MaxUnpool1d.__arguments = "kernel_size | stride padding"

MaxUnpool1d.dims, MaxUnpool1d.op = 1, "max_unpool1d"

--- nn.MaxUnpool1d(2)
function MaxUnpool1d:init(kernel_size, options) Unpool.init(self, kernel_size, options) end

---@param x Tensor [B, C, L] or [C, L] -> [B, C, L']
function MaxUnpool1d:forward(x, indices, output_size)
  local y = Unpool.forward(self, x, indices, output_size)
  return y
end

return MaxUnpool1d
