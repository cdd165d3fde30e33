-- stdlib/nn/ConvNd.lua: convolution in N dims.
-- B batch, I channels in, O channels out, ... dims.

local Convolution = require "ltrain.nn.convolution"
local dims_family = require "ltrain.core.dims_family"

return dims_family.extend(Convolution, "ConvNd", function(ConvNd, n)
  ConvNd.__arguments = "in_channels out_channels kernel_size"
    .. " | stride padding dilation groups bias padding_mode"
  ConvNd.op = ("conv%dd"):format(n)

  --- nn.ConvNd(1, 32, 3, {padding = 1})
  function ConvNd:init(in_channels, out_channels, kernel_size, options)
    Convolution.init(self, in_channels, out_channels, kernel_size, options)
  end

  ---@param x Tensor [B, I, ...] or [I, ...] -> [B, O, ...']
  function ConvNd:forward(x)
    local y = Convolution.forward(self, x)
    return y
  end
end)
