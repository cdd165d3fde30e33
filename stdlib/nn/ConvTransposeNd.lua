-- stdlib/nn/ConvTransposeNd.lua: transposed convolution in N dims: the gradient of a convolution
-- with respect to its input. B batch, I channels in, O channels out, ... dims.

local Convolution = require "ltrain.nn.convolution"
local c = require "ltrain.c"
local dims_family = require "ltrain.core.dims_family"
local errors = require "ltrain.core.errors"
local window_sizes = require "ltrain.nn.window_sizes"

local OPTIONS <const> = {
  stride = { type = "each", default = 1, min = 1 },
  padding = { type = "each", default = 0, min = 0,
    doc = "removed from both sides of the result" },
  output_padding = { type = "each", default = 0, min = 0,
    doc = "size added to one end of the result" },
  dilation = Convolution.options.dilation,
  groups = Convolution.options.groups,
  bias = Convolution.options.bias,
}

-- The options with the output_padding that gives sizes `wanted`, the last of a shape.
local function for_size(self, x, wanted)
  local o, n = self.options, self.dims
  if type(wanted) ~= "table" or (#wanted ~= n and #wanted ~= x.ndim) then
    errors.blame("nn.%s: output_size must be %d sizes or a shape: got %s", self.__name, n,
      errors.show(wanted))
  end
  local more = {}
  for k = 1, n do
    local stride, size = window_sizes.at(o.stride, k), wanted[#wanted - n + k]
    local least = (x.shape[x.ndim - n + k] - 1) * stride - 2 * window_sizes.at(o.padding, k)
      + window_sizes.at(o.dilation, k) * (window_sizes.at(self.kernel_size, k) - 1) + 1
    if math.type(size) ~= "integer" or size < least or size >= least + stride then
      errors.blame("nn.%s: output_size %d must be from %d to %d for %s: got %s", self.__name, k,
        least, least + stride - 1, errors.show(x), errors.show(size))
    end
    more[k] = size - least
  end
  return { stride = o.stride, padding = o.padding, dilation = o.dilation, groups = o.groups,
           output_padding = more }
end

return dims_family.extend(Convolution, "ConvTransposeNd", function(ConvTransposeNd, n)
  ConvTransposeNd.__arguments = "in_channels out_channels kernel_size"
    .. " | stride padding output_padding groups bias dilation"
  ConvTransposeNd.op, ConvTransposeNd.transposed = ("conv_transpose%dd"):format(n), true
  ConvTransposeNd.options = OPTIONS

  --- nn.ConvTransposeNd(32, 1, 2, {stride = 2}); output_size of a call: the sizes of the result
  function ConvTransposeNd:init(in_channels, out_channels, kernel_size, options)
    Convolution.init(self, in_channels, out_channels, kernel_size, options)
  end

  ---@param x Tensor [B, I, ...] or [I, ...] -> [B, O, ...']
  function ConvTransposeNd:forward(x, output_size)
    local options = output_size and for_size(self, x, output_size) or self.options
    local y = c[self.op](x, self.weight, self.bias, options)
    return y
  end
end)
