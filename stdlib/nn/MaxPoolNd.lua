-- stdlib/nn/MaxPoolNd.lua: max pooling, in N dims.
-- B batch, C channels, ... dims.

local Pooling = require "ltrain.nn.pooling"
local dims_family = require "ltrain.core.dims_family"

local rows <const> = Pooling.rows

return dims_family.extend(Pooling, "MaxPoolNd", function(MaxPoolNd, n)
  MaxPoolNd.__arguments = "kernel_size | stride padding dilation return_indices ceil_mode"
  MaxPoolNd.op = ("max_pool%dd"):format(n)
  MaxPoolNd.options = {
    stride = rows.stride, padding = rows.padding, ceil_mode = rows.ceil_mode,
    return_indices = rows.return_indices,
    dilation = { type = "each", default = 1, min = 1, doc = "spacing between a window's elements" },
  }

  --- nn.MaxPoolNd(2, {stride = 1})
  function MaxPoolNd:init(kernel_size, options)
    Pooling.init(self, "kernel_size", kernel_size, options)
  end

  ---@param x Tensor [B, C, ...] or [C, ...] -> [B, C, ...']
  function MaxPoolNd:forward(x)
    return Pooling.forward(self, x)
  end
end)
