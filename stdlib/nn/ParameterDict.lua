-- stdlib/nn/ParameterDict.lua: parameters by name: dict.scale, dict["scale"].

local Module = require "ltrain.nn.Module"
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local ParameterDict = Module:extend("ParameterDict")

--- nn.ParameterDict{scale = lt.ones(3), shift = lt.zeros(3)}: sorted by name; plain tensors are
--- converted to parameters
function ParameterDict:init(tensors)
  if tensors ~= nil and (type(tensors) ~= "table" or getmetatable(tensors) ~= nil) then
    errors.blame("nn.ParameterDict: needs a table of tensors: got %s", errors.show(tensors))
  end
  for name, tensor in tree.pairs(tensors or {}) do
    if type(name) ~= "string" or not c.is_tensor(tensor) then
      errors.blame("nn.ParameterDict: [%s] must be a tensor under a name: got %s",
        errors.show(name), errors.show(tensor))
    end
    self[name] = c.is_parameter(tensor) and tensor or c.parameter(tensor)
  end
end

return ParameterDict
