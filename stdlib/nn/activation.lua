-- stdlib/nn/activation.lua: the base class of activations that have options (`inplace`, a slope,
-- ...).
--
-- Such a class has a field `options`, rows of config.signature; its layers have each as a field.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"

local Activation = Module:extend("Activation")

--- The row of the option that most of them have.
Activation.inplace_row = { "inplace", type = "boolean", default = false,
  doc = "write the result to x" }

--- The options of a call, by place or by name.
function Activation:checked(first, second, third)
  return config.arguments("nn." .. self.__name, self.options, first, second, third)
end

--- Makes them fields of the layer.
function Activation:take(first, second, third)
  for name, value in next, self:checked(first, second, third) do self[name] = value end
end

function Activation:extra_repr()
  local shown = {}
  for i, row in ipairs(self.options) do
    if row.type ~= "boolean" then shown[i] = ("%g"):format(self[row[1]]) end
  end
  if self.inplace then shown[#shown + 1] = "{inplace = true}" end
  return table.concat(shown, ", ")
end

return Activation
