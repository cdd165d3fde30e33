-- stdlib/nn/Conv3d.lua: convolution in three dims.
-- B batch, I channels in, O channels out, D depth, H height, W width.

local Convolution = require "ltrain.nn.convolution"

local Conv3d = Convolution:extend("Conv3d")

Conv3d.__arguments = "in_channels out_channels kernel_size"
  .. " | stride padding dilation groups bias padding_mode"

Conv3d.dims, Conv3d.op = 3, "conv3d"

--- nn.Conv3d(1, 32, 3, {padding = 1})
function Conv3d:init(in_channels, out_channels, kernel_size, options)
  Convolution.init(self, in_channels, out_channels, kernel_size, options)
end

---@param x Tensor [B, I, D, H, W] or [I, D, H, W] -> [B, O, D', H', W']
function Conv3d:forward(x)
  local y = Convolution.forward(self, x)
  return y
end

return Conv3d
