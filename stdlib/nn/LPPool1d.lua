-- stdlib/nn/LPPool1d.lua: power-average pooling: p-norms of windows, in one dim.
-- B batch, C channels, L length.

local Norm = require "ltrain.nn.norm_pooling"

local LPPool1d = Norm:extend("LPPool1d")

LPPool1d.__arguments = "norm_type kernel_size | stride ceil_mode"

LPPool1d.dims, LPPool1d.op = 1, "lp_pool1d"

--- nn.LPPool1d(2, 3, {stride = 2})
function LPPool1d:init(norm_type, kernel_size, options)
  Norm.init(self, norm_type, kernel_size, options)
end

---@param x Tensor [B, C, L] or [C, L] -> [B, C, L']
function LPPool1d:forward(x)
  local y = Norm.forward(self, x)
  return y
end

return LPPool1d
