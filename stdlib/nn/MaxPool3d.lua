-- stdlib/nn/MaxPool3d.lua: max pooling, in three dims.
-- B batch, C channels, D depth, H height, W width.

local Max = require "ltrain.nn.pooling".Max

local MaxPool3d = Max:extend("MaxPool3d")

MaxPool3d.__arguments = "kernel_size | stride padding dilation return_indices ceil_mode"

MaxPool3d.dims, MaxPool3d.op = 3, "max_pool3d"

--- nn.MaxPool3d(2, {stride = 1})
function MaxPool3d:init(kernel_size, options) Max.init(self, kernel_size, options) end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> [B, C, D', H', W']
function MaxPool3d:forward(x)
  return Max.forward(self, x)
end

return MaxPool3d
