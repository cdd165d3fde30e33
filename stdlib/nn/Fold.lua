-- stdlib/nn/Fold.lua: sums columns of windows to images, as lt.col2im: overlapping elements are
-- added. N batch, C channels, H height, W width, K elements of a window, L windows.

local Unfold = require "ltrain.nn.Unfold"
local c = require "ltrain.c"
local window_sizes = require "ltrain.nn.window_sizes"

local Fold = Unfold:extend("Fold")

Fold.__arguments = "output_size kernel_size | dilation padding stride"

--- nn.Fold({8, 8}, 3, {padding = 1}): the sizes of the images and of the windows
function Fold:init(output_size, kernel_size, options)
  self.output_size = window_sizes.argument(self, "output_size", output_size)
  Unfold.init(self, kernel_size, options)
end

---@param x Tensor [N, C * K, L] or [C * K, L] -> [N, C, H, W]
function Fold:forward(x)
  local is_one <const> = x.ndim == 2
  local y = c.col2im(is_one and x:unsqueeze(1) or x, self.output_size, self.kernel_size,
    self.options)
  return is_one and y:squeeze(1) or y
end

function Fold:extra_repr()
  return window_sizes.show(self.output_size) .. ", " .. Unfold.extra_repr(self)
end

return Fold
