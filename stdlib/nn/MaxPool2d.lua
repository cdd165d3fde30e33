-- stdlib/nn/MaxPool2d.lua: max pooling, in two dims.
-- B batch, C channels, H height, W width.

local Max = require "ltrain.nn.pooling".Max

local MaxPool2d = Max:extend("MaxPool2d")

MaxPool2d.__arguments = "kernel_size | stride padding dilation return_indices ceil_mode"

MaxPool2d.dims, MaxPool2d.op = 2, "max_pool2d"

--- nn.MaxPool2d(2, {stride = 1})
function MaxPool2d:init(kernel_size, options) Max.init(self, kernel_size, options) end

---@param x Tensor [B, C, H, W] or [C, H, W] -> [B, C, H', W']
function MaxPool2d:forward(x)
  return Max.forward(self, x)
end

return MaxPool2d
