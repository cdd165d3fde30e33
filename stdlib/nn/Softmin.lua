-- stdlib/nn/Softmin.lua: softmax(-x) along a dim.

local Softmax = require "ltrain.nn.Softmax"

local Softmin = Softmax:extend("Softmin")

Softmin.__arguments = "dim"

--- nn.Softmin(-1): the dim
function Softmin:init(dim) Softmax.init(self, dim) end

function Softmin:forward(x)
  local y = x:softmin(self.dim)
  return y
end

return Softmin
