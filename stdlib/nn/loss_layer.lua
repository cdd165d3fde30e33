-- stdlib/nn/loss_layer.lua: makes the class of a loss from the name of its operation of a
-- prediction and a target.

local Loss = require "ltrain.nn.loss"
local c = require "ltrain.c"

-- Forwards by what they take.
local FORWARDS <const> = {
  two = function(self, prediction, target)
    local loss = c[self.op](prediction, target, self.options)
    return loss
  end,
  weighted = function(self, prediction, target)
    local loss = c[self.op](prediction, target, self.weight, self.options)
    return loss
  end,
  three = function(self, x1, x2, target)
    local loss = c[self.op](x1, x2, target, self.options)
    return loss
  end,
}

--- The class of a loss that is the operation `op` of what its `forward` takes: "two" tensors, two
--- and a weight ("weighted"), "three". `options`: besides reduction; `places`: all by place.
return function(name, op, forward, places, options)
  local class = Loss:extend(name)
  if places then class.__arguments = "| " .. places end
  class.op, class.options = op, options or {}
  class.options.reduction = class.options.reduction or Loss.reduction
  function class:init(given) Loss.init(self, given) end
  class.forward = FORWARDS[forward]
  return class
end
