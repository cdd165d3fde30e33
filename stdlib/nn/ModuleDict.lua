-- stdlib/nn/ModuleDict.lua: modules by name: dict.conv, dict["conv"].

local Module = require "ltrain.nn.Module"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"
local walk = require "ltrain.core.walk"

local ModuleDict = Module:extend("ModuleDict")

--- nn.ModuleDict{conv = nn.Conv2d(3, 8, 3), pool = nn.MaxPool2d(2)}: sorted by name
function ModuleDict:init(modules)
  if modules ~= nil and (type(modules) ~= "table" or getmetatable(modules) ~= nil) then
    errors.blame("nn.ModuleDict: needs a table of modules: got %s", errors.show(modules))
  end
  for name, module in tree.pairs(modules or {}) do
    if type(name) ~= "string" or not walk.is_module(module) then
      errors.blame("nn.ModuleDict: [%s] must be a module under a name: got %s",
        errors.show(name), errors.show(module))
    end
    self[name] = module
  end
end

return ModuleDict
