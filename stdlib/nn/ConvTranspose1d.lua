-- stdlib/nn/ConvTranspose1d.lua: transposed convolution in one dim: the gradient of a convolution
-- with respect to its input. B batch, I channels in, O channels out, L length.

local Transposed = require "ltrain.nn.transposed_convolution"

local ConvTranspose1d = Transposed:extend("ConvTranspose1d")

ConvTranspose1d.__arguments = "in_channels out_channels kernel_size"
  .. " | stride padding output_padding groups bias dilation"

ConvTranspose1d.dims, ConvTranspose1d.op = 1, "conv_transpose1d"

--- nn.ConvTranspose1d(32, 1, 2, {stride = 2}); output_size of a call: the sizes of the result
function ConvTranspose1d:init(in_channels, out_channels, kernel_size, options)
  Transposed.init(self, in_channels, out_channels, kernel_size, options)
end

---@param x Tensor [B, I, L] or [I, L] -> [B, O, L']
function ConvTranspose1d:forward(x, output_size)
  local y = Transposed.forward(self, x, output_size)
  return y
end

return ConvTranspose1d
