-- stdlib/nn/activation.lua: what activations with options share.
--
-- Such a class has a field `options`, the rows of config.check, and in `order` the names of numbers
-- as a call has them. The layer has each option as a field.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"

local Activation = Module:extend("Activation")

--- The row of the option that most of them have.
Activation.inplace_row = { type = "boolean", default = false,
  doc = "write the result to x" }

--- The options of a call by name: numbers in their places, then a table that names the others.
function Activation:checked(first, second, third)
  local where <const>, given, rest = "nn." .. self.__name, {}, nil
  local values <const> = { first, second, third }
  for i = 1, 3 do
    local value <const> = values[i]
    if value ~= nil and (rest or i > #self.order and type(value) ~= "table") then
      errors.blame("%s: one argument too many: %s", where, errors.show(value))
    elseif type(value) == "table" then
      rest = value
    elseif value ~= nil then
      given[self.order[i]] = value
    end
  end
  for name, value in next, rest or {} do
    if given[name] ~= nil then errors.blame("%s: %s is given twice", where, name) end
    given[name] = value
  end
  return config.check(given, self.options, where)
end

--- Makes them fields of the layer.
function Activation:take(first, second, third)
  for name, value in next, self:checked(first, second, third) do self[name] = value end
end

function Activation:extra_repr()
  local shown = {}
  for i, name in ipairs(self.order) do shown[i] = ("%g"):format(self[name]) end
  if self.inplace then shown[#shown + 1] = "{inplace = true}" end
  return table.concat(shown, ", ")
end

return Activation
