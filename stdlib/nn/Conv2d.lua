-- stdlib/nn/Conv2d.lua: convolution in two dims.
-- B batch, I channels in, O channels out, H height, W width.

local Convolution = require "ltrain.nn.convolution"

local Conv2d = Convolution:extend("Conv2d")

Conv2d.__arguments = "in_channels out_channels kernel_size"
  .. " | stride padding dilation groups bias padding_mode"

Conv2d.dims, Conv2d.op = 2, "conv2d"

--- nn.Conv2d(1, 32, 3, {padding = 1})
function Conv2d:init(in_channels, out_channels, kernel_size, options)
  Convolution.init(self, in_channels, out_channels, kernel_size, options)
end

---@param x Tensor [B, I, H, W] or [I, H, W] -> [B, O, H', W']
function Conv2d:forward(x)
  local y = Convolution.forward(self, x)
  return y
end

return Conv2d
