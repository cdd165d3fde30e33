-- stdlib/nn/MaxPool1d.lua: max pooling, in one dim.
-- B batch, C channels, L length.

local Max = require "ltrain.nn.pooling".Max

local MaxPool1d = Max:extend("MaxPool1d")

MaxPool1d.__arguments = "kernel_size | stride padding dilation return_indices ceil_mode"

MaxPool1d.dims, MaxPool1d.op = 1, "max_pool1d"

--- nn.MaxPool1d(2, {stride = 1})
function MaxPool1d:init(kernel_size, options) Max.init(self, kernel_size, options) end

---@param x Tensor [B, C, L] or [C, L] -> [B, C, L']
function MaxPool1d:forward(x)
  return Max.forward(self, x)
end

return MaxPool1d
