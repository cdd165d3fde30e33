-- stdlib/nn/LogSigmoid.lua: log(sigmoid(x)).

local Module = require "ltrain.nn.Module"

local LogSigmoid = Module:extend("LogSigmoid")

function LogSigmoid:forward(x)
  local y = x:logsigmoid()
  return y
end

return LogSigmoid
