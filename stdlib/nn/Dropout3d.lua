-- stdlib/nn/Dropout3d.lua: zeroes random channels in training; others are scaled by 1 / (1 - p).
-- B batch, C channels.
--
-- Tompson et al.: Efficient object localization using convolutional networks, 2015.

local Dropout = require "ltrain.nn.Dropout"
local channel_dropout = require "ltrain.nn.channel_dropout"

local Dropout3d = Dropout:extend("Dropout3d")

Dropout3d.__arguments = "p"

--- nn.Dropout3d(0.1): the probability p, 0.5 by default
function Dropout3d:init(p) Dropout.init(self, p) end

---@param x Tensor [B, C, D, H, W] -> the same
function Dropout3d:forward(x)
  local y = channel_dropout(self, x, 5, "[B, C, D, H, W]")
  return y
end

return Dropout3d
