-- stdlib/nn/ConvTranspose3d.lua: transposed convolution in three dims: the gradient of a
-- convolution with respect to its input. B batch, I channels in, O channels out, D depth, H height,
-- W width.

local Transposed = require "ltrain.nn.transposed_convolution"

local ConvTranspose3d = Transposed:extend("ConvTranspose3d")

ConvTranspose3d.__arguments = "in_channels out_channels kernel_size"
  .. " | stride padding output_padding groups bias dilation"

ConvTranspose3d.dims, ConvTranspose3d.op = 3, "conv_transpose3d"

--- nn.ConvTranspose3d(32, 1, 2, {stride = 2}); output_size of a call: the sizes of the result
function ConvTranspose3d:init(in_channels, out_channels, kernel_size, options)
  Transposed.init(self, in_channels, out_channels, kernel_size, options)
end

---@param x Tensor [B, I, D, H, W] or [I, D, H, W] -> [B, O, D', H', W']
function ConvTranspose3d:forward(x, output_size)
  local y = Transposed.forward(self, x, output_size)
  return y
end

return ConvTranspose3d
