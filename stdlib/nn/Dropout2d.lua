-- stdlib/nn/Dropout2d.lua: zeroes random channels in training; others are scaled by 1 / (1 - p).
-- B batch, C channels.
--
-- Tompson et al.: Efficient object localization using convolutional networks, 2015.

local Dropout = require "ltrain.nn.Dropout"
local channel_dropout = require "ltrain.nn.channel_dropout"

local Dropout2d = Dropout:extend("Dropout2d")

Dropout2d.__arguments = "p"

--- nn.Dropout2d(0.1): the probability p, 0.5 by default
function Dropout2d:init(p) Dropout.init(self, p) end

---@param x Tensor [B, C, H, W] -> the same
function Dropout2d:forward(x)
  local y = channel_dropout(self, x, 4, "[B, C, H, W]")
  return y
end

return Dropout2d
