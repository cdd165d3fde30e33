-- stdlib/nn/AvgPool2d.lua: average pooling, in two dims.
-- B batch, C channels, H height, W width.

local Average = require "ltrain.nn.pooling".Average

local AvgPool2d = Average:extend("AvgPool2d")

AvgPool2d.__arguments = "kernel_size | stride padding ceil_mode count_include_pad divisor_override"

AvgPool2d.dims, AvgPool2d.op = 2, "avg_pool2d"

--- nn.AvgPool2d(2, {stride = 1})
function AvgPool2d:init(kernel_size, options) Average.init(self, kernel_size, options) end

---@param x Tensor [B, C, H, W] or [C, H, W] -> [B, C, H', W']
function AvgPool2d:forward(x)
  local y = Average.forward(self, x)
  return y
end

return AvgPool2d
