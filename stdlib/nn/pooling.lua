-- stdlib/nn/pooling.lua: the base class of pooling layers: a window size and options. A class names
-- its `dims`, its operation `op`, and has its `options`.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local window_sizes = require "ltrain.nn.window_sizes"

local ORDER <const> = { "stride", "padding", "dilation", "ceil_mode", "count_include_pad",
  "divisor_override", "return_indices" }

local Pooling = Module:extend("Pooling")

--- The rows of options that several classes have.
Pooling.rows = {
  stride = { type = "each", min = 1, doc = "step between windows; by default the window size" },
  padding = { type = "each", default = 0, min = 0 },
  ceil_mode = { type = "boolean", default = false,
    doc = "round the output size up: windows may extend beyond the end" },
  return_indices = { type = "boolean", default = false,
    doc = "also return the indices of the maxima, from 0" },
}

--- `name`: "kernel_size" or "output_size", the first argument of the operation, of value `size`.
function Pooling:init(name, size, given)
  local rows <const>, is_output <const> = self.options, name == "output_size"
  self[name] = window_sizes.argument(self, name, size, is_output and 0 or 1, is_output and "sizes")
  self.options = window_sizes.options(self, given, rows)
  self._size, self._shown = name, window_sizes.repr(self.options, rows, ORDER)
  if rows.stride then self.options.stride = self.options.stride or self[name] end
end

function Pooling:forward(x)
  return c[self.op](x, self[self._size], self.options)
end

function Pooling:extra_repr()
  local text = window_sizes.show(self[self._size])
  return self._shown and text .. ", " .. self._shown or text
end

return Pooling
