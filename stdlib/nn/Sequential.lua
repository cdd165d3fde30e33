-- stdlib/nn/Sequential.lua: modules one after the other.

local Module = require "ltrain.core.Module"
local ModuleList = require "ltrain.nn.ModuleList"

local Sequential = Module:extend("Sequential")

--- nn.Sequential(nn.Linear(4, 8), nn.ReLU(), ...); a list of modules does as well
Sequential.init = ModuleList.init
Sequential.append = ModuleList.append

function Sequential:forward(x, ...)
  for i = 1, #self do
    if i == 1 then x = self[1](x, ...) else x = self[i](x) end
  end
  return x
end

return Sequential
