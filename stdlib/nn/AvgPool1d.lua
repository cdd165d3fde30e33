-- stdlib/nn/AvgPool1d.lua: average pooling, in one dim.
-- B batch, C channels, L length.

local Average = require "ltrain.nn.pooling".Average

local AvgPool1d = Average:extend("AvgPool1d")

AvgPool1d.__arguments = "kernel_size | stride padding ceil_mode count_include_pad"

AvgPool1d.dims, AvgPool1d.op = 1, "avg_pool1d"

--- nn.AvgPool1d(2, {stride = 1})
function AvgPool1d:init(kernel_size, options) Average.init(self, kernel_size, options) end

---@param x Tensor [B, C, L] or [C, L] -> [B, C, L']
function AvgPool1d:forward(x)
  local y = Average.forward(self, x)
  return y
end

return AvgPool1d
