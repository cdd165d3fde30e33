-- stdlib/nn/LPPoolNd.lua: power-average pooling: p-norms of windows, in N dims.
-- B batch, C channels, ... dims.

local Module = require "ltrain.nn.Module"
local Pooling = require "ltrain.nn.pooling"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local dims_family = require "ltrain.core.dims_family"
local window_sizes = require "ltrain.nn.window_sizes"

return dims_family.extend(Module, "LPPoolNd", function(LPPoolNd, n)
  LPPoolNd.__arguments = "norm_type kernel_size | stride ceil_mode"
  LPPoolNd.op = ("lp_pool%dd"):format(n)
  LPPoolNd.options = { stride = Pooling.rows.stride, ceil_mode = Pooling.rows.ceil_mode }

  --- nn.LPPoolNd(2, 3, {stride = 2})
  function LPPoolNd:init(norm_type, kernel_size, options)
    self.norm_type = config.argument(norm_type, "number", "nn." .. self.__name, "norm_type")
    self.kernel_size = window_sizes.argument(self, "kernel_size", kernel_size)
    self.options = window_sizes.options(self, options, self.options)
  end

  ---@param x Tensor [B, C, ...] or [C, ...] -> [B, C, ...']
  function LPPoolNd:forward(x)
    local y = c[self.op](x, self.norm_type, self.kernel_size, self.options)
    return y
  end

  function LPPoolNd:extra_repr()
    return ("%g, %s"):format(self.norm_type, window_sizes.show(self.kernel_size))
  end
end)
