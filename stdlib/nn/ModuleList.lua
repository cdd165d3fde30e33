-- stdlib/nn/ModuleList.lua: an array of modules: list[1], #list, ipairs(list).

local Module = require "ltrain.nn.Module"
local class = require "ltrain.core.class"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"
local walk = require "ltrain.core.walk"

local ModuleList = Module:extend("ModuleList")

--- nn.ModuleList{a, b} or nn.ModuleList(a, b)
function ModuleList:init(...)
  local list = table.pack(...)
  local count = list.n
  if type(list[1]) == "table" and getmetatable(list[1]) == nil then
    list = list[1]
    count = elements.count(list)
  end
  for i = 1, count do self:append(list[i]) end
end

-- What to do about an element that is none.
local function remedy(self, value)
  if type(value) == "userdata" then
    return (": make the object first, then call it: %s(...)(x)"):format(walk.class_name(self))
  end
  return class.made[value] and ": call it to make a module" or ""
end

--- Appends a module; returns the list.
function ModuleList:append(module)
  if not walk.is_module(module) then
    errors.blame("nn.%s: element %d must be a module: got %s%s", walk.class_name(self), #self + 1,
      errors.show(module), remedy(self, module))
  end
  self[#self + 1] = module
  return self
end

return ModuleList
