-- stdlib/nn/Sequential.lua: a chain of modules.

local Module = require "ltrain.nn.Module"
local ModuleList = require "ltrain.nn.ModuleList"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local Sequential = Module:extend("Sequential")

--- nn.Sequential(nn.Linear(4, 8), nn.ReLU(), ...); or a list of modules
Sequential.init = ModuleList.init
Sequential.append = ModuleList.append

function Sequential:forward(x, ...)
  for i = 1, #self do
    local layer = self[i]
    if layer == nil then errors.blame("%s: element %d is nil", walk.class_name(self), i) end
    if i == 1 then x = layer(x, ...) else x = layer(x) end
  end
  return x
end

return Sequential
