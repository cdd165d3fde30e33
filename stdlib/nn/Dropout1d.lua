-- stdlib/nn/Dropout1d.lua: zeroes random channels in training; others are scaled by 1 / (1 - p).
-- B batch, C channels.
--
-- Tompson et al.: Efficient object localization using convolutional networks, 2015.

local Dropout = require "ltrain.nn.Dropout"
local channel_dropout = require "ltrain.nn.channel_dropout"

local Dropout1d = Dropout:extend("Dropout1d")

Dropout1d.__arguments = "p"

--- nn.Dropout1d(0.1): the probability p, 0.5 by default
function Dropout1d:init(p) Dropout.init(self, p) end

---@param x Tensor [B, C, L] -> the same
function Dropout1d:forward(x)
  local y = channel_dropout(self, x, 3, "[B, C, L]")
  return y
end

return Dropout1d
