-- stdlib/nn/ParameterList.lua: an array of parameters: list[1], #list, ipairs(list).

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local elements = require "ltrain.core.elements"
local errors = require "ltrain.core.errors"

local ParameterList = Module:extend("ParameterList")

--- nn.ParameterList{lt.zeros(3), lt.ones(2)}: plain tensors are converted to parameters
function ParameterList:init(tensors)
  if tensors ~= nil and type(tensors) ~= "table" then
    errors.blame("nn.ParameterList: needs a list of tensors: got %s", errors.show(tensors))
  end
  for _, tensor in elements.each(tensors or {}) do self:append(tensor) end
end

--- Appends a tensor; returns the list.
function ParameterList:append(tensor)
  if not c.is_tensor(tensor) then
    errors.blame("nn.ParameterList: element %d must be a tensor: got %s", #self + 1,
      errors.show(tensor))
  end
  self[#self + 1] = c.is_parameter(tensor) and tensor or c.parameter(tensor)
  return self
end

return ParameterList
