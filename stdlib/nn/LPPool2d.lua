-- stdlib/nn/LPPool2d.lua: power-average pooling: p-norms of windows, in two dims.
-- B batch, C channels, H height, W width.

local Norm = require "ltrain.nn.norm_pooling"

local LPPool2d = Norm:extend("LPPool2d")

LPPool2d.__arguments = "norm_type kernel_size | stride ceil_mode"

LPPool2d.dims, LPPool2d.op = 2, "lp_pool2d"

--- nn.LPPool2d(2, 3, {stride = 2})
function LPPool2d:init(norm_type, kernel_size, options)
  Norm.init(self, norm_type, kernel_size, options)
end

---@param x Tensor [B, C, H, W] or [C, H, W] -> [B, C, H', W']
function LPPool2d:forward(x)
  local y = Norm.forward(self, x)
  return y
end

return LPPool2d
