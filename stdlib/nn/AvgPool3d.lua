-- stdlib/nn/AvgPool3d.lua: average pooling, in three dims.
-- B batch, C channels, D depth, H height, W width.

local Average = require "ltrain.nn.pooling".Average

local AvgPool3d = Average:extend("AvgPool3d")

AvgPool3d.__arguments = "kernel_size | stride padding ceil_mode count_include_pad divisor_override"

AvgPool3d.dims, AvgPool3d.op = 3, "avg_pool3d"

--- nn.AvgPool3d(2, {stride = 1})
function AvgPool3d:init(kernel_size, options) Average.init(self, kernel_size, options) end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> [B, C, D', H', W']
function AvgPool3d:forward(x)
  local y = Average.forward(self, x)
  return y
end

return AvgPool3d
