-- stdlib/nn/activation.lua: what activations with numbers share.
--
-- Such a class has a field `options`, the rows of config.check, and in `order` their names as a
-- call has them. The layer has each number as a field.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local Activation = Module:extend("Activation")

--- The numbers of a call by name: each in its place, or a table that names them.
function Activation:checked(first, second)
  local where, given = "nn." .. self.__name, first
  if type(first) ~= "table" then
    given = {}
    for i, value in pairs { first, second } do given[self.order[i]] = value end
  elseif second ~= nil then
    errors.blame("%s: one argument too many: %s", where, errors.show(second))
  end
  return config.check(given, self.options, where)
end

--- Makes them fields of the layer.
function Activation:take(first, second)
  local numbers = self:checked(first, second)
  for _, name in ipairs(self.order) do self[name] = numbers[name] end
end

function Activation:extra_repr()
  local shown = {}
  for i, name in ipairs(self.order) do shown[i] = ("%g"):format(self[name]) end
  return table.concat(shown, ", ")
end

return Activation
