-- stdlib/nn/LPPool3d.lua: power-average pooling: p-norms of windows, in three dims.
-- B batch, C channels, D depth, H height, W width.

local Norm = require "ltrain.nn.norm_pooling"

local LPPool3d = Norm:extend("LPPool3d")

LPPool3d.__arguments = "norm_type kernel_size | stride ceil_mode"

LPPool3d.dims, LPPool3d.op = 3, "lp_pool3d"

--- nn.LPPool3d(2, 3, {stride = 2})
function LPPool3d:init(norm_type, kernel_size, options)
  Norm.init(self, norm_type, kernel_size, options)
end

---@param x Tensor [B, C, D, H, W] or [C, D, H, W] -> [B, C, D', H', W']
function LPPool3d:forward(x)
  local y = Norm.forward(self, x)
  return y
end

return LPPool3d
