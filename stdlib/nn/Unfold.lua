-- stdlib/nn/Unfold.lua: extracts windows of images as columns, as lt.im2col.
-- N batch, C channels, H height, W width, K elements of a window, L windows.

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local window_sizes = require "ltrain.nn.window_sizes"

local Unfold = Module:extend("Unfold")

Unfold.__arguments = "kernel_size | dilation padding stride"

Unfold.dims = 2
Unfold.options = {
  dilation = { type = "each", default = 1, min = 1, doc = "spacing between a window's elements" },
  padding = { type = "each", default = 0, min = 0 },
  stride = { type = "each", default = 1, min = 1, doc = "step between windows" },
}

--- nn.Unfold(3, {padding = 1})
function Unfold:init(kernel_size, options)
  self.kernel_size = window_sizes.argument(self, "kernel_size", kernel_size)
  self.options = window_sizes.options(self, options, self.options)
  self._shown = window_sizes.repr(self.options, getmetatable(self).options,
    { "dilation", "padding", "stride" })
end

---@param x Tensor [N, C, H, W] or [C, H, W] -> [N, C * K, L]
function Unfold:forward(x)
  local is_one <const> = x.ndim == 3
  local y = c.im2col(is_one and x:unsqueeze(1) or x, self.kernel_size, self.options)
  return is_one and y:squeeze(1) or y
end

function Unfold:extra_repr()
  local text = window_sizes.show(self.kernel_size)
  return self._shown and text .. ", " .. self._shown or text
end

return Unfold
