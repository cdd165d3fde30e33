-- stdlib/nn/Softmax.lua: exp(x) / sum(exp(x)) along a dim.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"

local Softmax = Module:extend("Softmax")

Softmax.__arguments = "dim"

--- nn.Softmax(-1): the dim
function Softmax:init(dim)
  self.dim = config.argument(dim, "integer", "nn." .. self.__name, "dim")
end

function Softmax:forward(x)
  local y = x:softmax(self.dim)
  return y
end

function Softmax:extra_repr() return tostring(self.dim) end

return Softmax
