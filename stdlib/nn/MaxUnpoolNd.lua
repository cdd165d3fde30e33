-- stdlib/nn/MaxUnpoolNd.lua: the inverse of max pooling, at the indices that it returned, in
-- N dims. B batch, C channels, ... dims.

local Pooling = require "ltrain.nn.pooling"
local c = require "ltrain.c"
local dims_family = require "ltrain.core.dims_family"

return dims_family.extend(Pooling, "MaxUnpoolNd", function(MaxUnpoolNd, n)
  MaxUnpoolNd.__arguments = "kernel_size | stride padding"
  MaxUnpoolNd.op = ("max_unpool%dd"):format(n)
  MaxUnpoolNd.options = { stride = Pooling.rows.stride, padding = Pooling.rows.padding }

  --- nn.MaxUnpoolNd(2)
  function MaxUnpoolNd:init(kernel_size, options)
    Pooling.init(self, "kernel_size", kernel_size, options)
  end

  ---@param x Tensor [B, C, ...] or [C, ...] -> [B, C, ...']
  function MaxUnpoolNd:forward(x, indices, output_size)
    local o = self.options
    local y = c[self.op](x, indices, self.kernel_size,
      { stride = o.stride, padding = o.padding, output_size = output_size })
    return y
  end
end)
