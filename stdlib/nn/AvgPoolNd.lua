-- stdlib/nn/AvgPoolNd.lua: average pooling, in N dims.
-- B batch, C channels, ... dims.

local Pooling = require "ltrain.nn.pooling"
local dims_family = require "ltrain.core.dims_family"

local rows <const> = Pooling.rows

return dims_family.extend(Pooling, "AvgPoolNd", function(AvgPoolNd, n)
  AvgPoolNd.__arguments = "kernel_size | stride padding ceil_mode count_include_pad"
    .. (n == 1 and "" or " divisor_override") -- as in PyTorch
  AvgPoolNd.op = ("avg_pool%dd"):format(n)
  AvgPoolNd.options = {
    stride = rows.stride, padding = rows.padding, ceil_mode = rows.ceil_mode,
    count_include_pad = { type = "boolean", default = true,
      doc = "include padding in the means" },
    divisor_override = { type = "integer",
      doc = "divisor of the sums, instead of the window size" },
  }

  --- nn.AvgPoolNd(2, {stride = 1})
  function AvgPoolNd:init(kernel_size, options)
    Pooling.init(self, "kernel_size", kernel_size, options)
  end

  ---@param x Tensor [B, C, ...] or [C, ...] -> [B, C, ...']
  function AvgPoolNd:forward(x)
    local y = Pooling.forward(self, x)
    return y
  end
end)
