-- stdlib/nn/loss.lua: the base class of losses. A loss has a class field `options`, the rows of
-- config.check; its layer has them with their values, and tensors among them as buffers.

local Module = require "ltrain.nn.Module"
local config = require "ltrain.core.config"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local Loss = Module:extend("Loss")

Loss.reduction = { type = "string", default = "mean", choices = { "mean", "sum", "none" } }

function Loss:init(options)
  local o = config.check(options, self.options, "nn." .. self.__name)
  for _, name in ipairs(tree.keys(o)) do
    if self.options[name].type == "tensor" then
      self:register_buffer(name, o[name])
      o[name] = nil
    end
  end
  self.options = o
end

function Loss:extra_repr()
  local class, shown = getmetatable(self), {}
  for _, name in ipairs(tree.keys(self.options)) do
    local value = self.options[name]
    if value ~= class.options[name].default then
      shown[#shown + 1] = ("%s = %s"):format(name, errors.show(value))
    end
  end
  return #shown == 0 and "" or "{" .. table.concat(shown, ", ") .. "}"
end

return Loss
