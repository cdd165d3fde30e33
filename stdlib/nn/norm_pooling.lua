-- stdlib/nn/norm_pooling.lua: what power-average pooling: p-norms of windows in one to three dims
-- share.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local config = require "ltrain.core.config"
local windows = require "ltrain.nn.windows"

local Norm = Module:extend("LPPool")

Norm.options = {
  stride = { type = "each", min = 1,
    doc = "step between windows; by default the window size" },
  ceil_mode = { type = "boolean", default = false,
    doc = "round the output size up: windows may extend beyond the end" },
}

function Norm:init(norm_type, kernel_size, options)
  self.norm_type = config.argument(norm_type, "number", "nn." .. self.__name, "norm_type")
  self.kernel_size = windows.argument(self, "kernel_size", kernel_size)
  self.options = windows.options(self, options, Norm.options)
end

function Norm:forward(x)
  local y = c[self.op](x, self.norm_type, self.kernel_size, self.options)
  return y
end

function Norm:extra_repr()
  return ("%g, %s"):format(self.norm_type, windows.show(self.kernel_size))
end

return Norm
