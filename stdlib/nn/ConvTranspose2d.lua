-- stdlib/nn/ConvTranspose2d.lua: transposed convolution in two dims: the gradient of a convolution
-- with respect to its input. B batch, I channels in, O channels out, H height, W width.

local Transposed = require "ltrain.nn.transposed_convolution"

local ConvTranspose2d = Transposed:extend("ConvTranspose2d")

ConvTranspose2d.__arguments = "in_channels out_channels kernel_size"
  .. " | stride padding output_padding groups bias dilation"

ConvTranspose2d.dims, ConvTranspose2d.op = 2, "conv_transpose2d"

--- nn.ConvTranspose2d(32, 1, 2, {stride = 2}); output_size of a call: the sizes of the result
function ConvTranspose2d:init(in_channels, out_channels, kernel_size, options)
  Transposed.init(self, in_channels, out_channels, kernel_size, options)
end

---@param x Tensor [B, I, H, W] or [I, H, W] -> [B, O, H', W']
function ConvTranspose2d:forward(x, output_size)
  local y = Transposed.forward(self, x, output_size)
  return y
end

return ConvTranspose2d
