-- stdlib/nn/LogSoftmax.lua: log(softmax(x)) along a dim.

local Softmax = require "ltrain.nn.Softmax"

local LogSoftmax = Softmax:extend("LogSoftmax")

LogSoftmax.__arguments = "dim"

--- nn.LogSoftmax(-1): the dim
function LogSoftmax:init(dim) Softmax.init(self, dim) end

function LogSoftmax:forward(x)
  local y = x:log_softmax(self.dim)
  return y
end

return LogSoftmax
