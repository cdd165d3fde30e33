-- stdlib/nn/pooling.lua: what pooling in one to three dims shares.
-- A class names its `dims` and its operation, `op`.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local windows = require "ltrain.nn.windows"

local STRIDE <const> = { type = "each", min = 1,
  doc = "step between windows; by default the window size" }
local PADDING <const> = { type = "each", default = 0, min = 0 }
local CEIL <const> = { type = "boolean", default = false,
  doc = "round the output size up: windows may extend beyond the end" }
local INDICES <const> = { type = "boolean", default = false,
  doc = "also return the indices of the maxima, from 0" }
local ORDER <const> = { "stride", "padding", "dilation", "ceil_mode", "count_include_pad",
  "divisor_override", "return_indices" }

local pooling = {}

-- A class of layers that call their operation with one argument and the options.
local function family(name, argument, least, options, forward)
  local Pool = Module:extend(name)
  Pool.options = options

  function Pool:init(value, given)
    local kind <const> = argument == "output_size" and "sizes" or "each"
    self[argument] = windows.argument(self, argument, value, least, kind)
    self.options = windows.options(self, given, options)
    self._shown = windows.repr(self.options, options, ORDER)
    if options.stride then self.options.stride = self.options.stride or self[argument] end
  end

  Pool.forward = forward or function(self, x)
    return c[self.op](x, self[argument], self.options)
  end

  function Pool:extra_repr()
    local text = windows.show(self[argument])
    return self._shown and text .. ", " .. self._shown or text
  end

  return Pool
end

pooling.Max = family("MaxPool", "kernel_size", 1, {
  stride = STRIDE, padding = PADDING, ceil_mode = CEIL, return_indices = INDICES,
  dilation = { type = "each", default = 1, min = 1, doc = "spacing between a window's elements" },
})
pooling.Average = family("AvgPool", "kernel_size", 1, {
  stride = STRIDE, padding = PADDING, ceil_mode = CEIL,
  count_include_pad = { type = "boolean", default = true,
    doc = "include padding in the means" },
  divisor_override = { type = "integer", doc = "divisor of the sums, instead of the window size" },
})
pooling.AdaptiveAverage = family("AdaptiveAvgPool", "output_size", 0, {})
pooling.AdaptiveMax = family("AdaptiveMaxPool", "output_size", 0, { return_indices = INDICES })

-- `output_size`: the sizes that are wanted, where several would do.
local function unpool(self, x, indices, output_size)
  local o = self.options
  local y = c[self.op](x, indices, self.kernel_size,
    { stride = o.stride, padding = o.padding, output_size = output_size })
  return y
end

pooling.Unpool = family("MaxUnpool", "kernel_size", 1, { stride = STRIDE, padding = PADDING },
  unpool)

return pooling
