-- stdlib/nn/ChannelShuffle.lua: interleaves the channels of groups.
-- N batch, C channels.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local pixel_shuffle = require "ltrain.ops.pixel_shuffle"

local ChannelShuffle = Module:extend("ChannelShuffle")

ChannelShuffle.__arguments = "groups"

--- nn.ChannelShuffle(2)
function ChannelShuffle:init(groups)
  self.groups = config.argument(groups, "integer", "nn.ChannelShuffle", "groups",
    { min = 1 })
end

---@param x Tensor [N, C, ...] -> the same
function ChannelShuffle:forward(x)
  local y = pixel_shuffle.channel_shuffle(x, self.groups)
  return y
end

function ChannelShuffle:extra_repr() return ("%d"):format(self.groups) end

return ChannelShuffle
