-- stdlib/nn/Conv1d.lua: convolution in one dim.
-- B batch, I channels in, O channels out, L length.

local Convolution = require "ltrain.nn.convolution"

local Conv1d = Convolution:extend("Conv1d")

Conv1d.__arguments = "in_channels out_channels kernel_size"
  .. " | stride padding dilation groups bias padding_mode"

Conv1d.dims, Conv1d.op = 1, "conv1d"

--- nn.Conv1d(1, 32, 3, {padding = 1})
function Conv1d:init(in_channels, out_channels, kernel_size, options)
  Convolution.init(self, in_channels, out_channels, kernel_size, options)
end

---@param x Tensor [B, I, L] or [I, L] -> [B, O, L']
function Conv1d:forward(x)
  local y = Convolution.forward(self, x)
  return y
end

return Conv1d
